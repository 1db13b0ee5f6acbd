module kubewin.invalid/lab/mute

go 1.24.0

require golang.org/x/sys v0.32.0
