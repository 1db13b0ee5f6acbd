// Builds csi-proxy v1.1.3 from its published module; see playbooks/files/csi_proxy_build.
module kubewin.invalid/csi-proxy-build

// The same line as the release's own go.mod: it decides the GODEBUG defaults that the program is built with
// (winsymlink=0 among them, on which csi-proxy's handling of mount points rests).
go 1.20

require github.com/kubernetes-csi/csi-proxy v1.1.3

// Exactly the versions in the release's own go.mod, and only what the program is compiled from.
require (
	github.com/Microsoft/go-winio v0.6.1 // indirect
	github.com/go-logr/logr v1.2.0 // indirect
	github.com/golang/protobuf v1.5.3 // indirect
	github.com/kubernetes-csi/csi-proxy/client v1.1.3 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	golang.org/x/net v0.9.0 // indirect
	golang.org/x/sys v0.11.0 // indirect
	golang.org/x/text v0.9.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20230525234030-28d5490b6b19 // indirect
	google.golang.org/grpc v1.57.0 // indirect
	google.golang.org/protobuf v1.31.0 // indirect
	k8s.io/klog/v2 v2.100.1 // indirect
)

// The release points at ./client in its own tree, which a module that requires it does not see.
// The published client of the same release is what it was built with.
replace github.com/kubernetes-csi/csi-proxy/client => github.com/kubernetes-csi/csi-proxy/client v1.1.3

// Used by the release's code generator only, never by the program; the version in its go.mod does not exist.
replace k8s.io/gengo => github.com/mauriciopoppe/gengo v0.0.0-20210525224835-9c78f58f3486
