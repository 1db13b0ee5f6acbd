package main

import (
	"errors"
	"os"

	"kubewin.invalid/lab/winland/agent"
	"kubewin.invalid/lab/winland/sim"
)

func run(args []string) error {
	if len(args) != 4 || args[1] != "serve" || args[2] != "--listen" {
		return errors.New("usage: winland serve --listen 127.0.0.1:0")
	}
	return agent.New(sim.NewFleet()).Serve(args[3], os.Stdout)
}
