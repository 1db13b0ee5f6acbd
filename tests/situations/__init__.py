# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A healthy cluster as API objects, and every situation that readiness must distinguish from it."""
