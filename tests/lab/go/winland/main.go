// winland is a small Windows userland for the lab. On Linux it serves simulated machines, on Windows (Wine) it is the
// agent and, under the names of the in-box programs, those programs. See README.md.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "winland:", err)
		os.Exit(1)
	}
}
