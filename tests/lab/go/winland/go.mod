module kubewin.invalid/lab/winland

go 1.26.0
