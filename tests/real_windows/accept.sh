# Starts `python -m real_windows` in the controller that the Windows workflow makes in WSL. The arguments are its own.
set -euo pipefail
export ANSIBLE_CONFIG="$PWD/ansible.cfg" ANSIBLE_COLLECTIONS_PATH="$HOME/collections"
export PYTHONPATH="tests:$HOME/collections" PYTHONDONTWRITEBYTECODE=1
export KUBEWIN_WINDOWS_CA="$PWD/.work/windows.pem" KUBEWIN_WINDOWS_SSH_KEY="$HOME/key"
# A master connection would serve the next step with the shell of the one before.
export ANSIBLE_SSH_ARGS="-o ControlMaster=no"
# In the file system of Windows each file is executable, and Ansible would start the inventory as a program.
export ANSIBLE_INVENTORY_ENABLED=yaml
"$HOME/controller/bin/python" -m real_windows --binaries binaries "$@"
