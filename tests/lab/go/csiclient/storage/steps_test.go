// Copyright (c) 2026, kubewin.csi contributors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumeapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	"google.golang.org/grpc"
)

const (
	attachedDisk = 2
	volumeID     = `\\?\Volume{11111111-0000-0000-0000-000000000001}\`
)

// fakeWindows is a machine with two disks, and csi-proxy on it. Its files are followed through links.
type fakeWindows struct {
	diskapi.DiskClient
	volumeapi.VolumeClient
	smbapi.SmbClient
	filesapi.FilesystemClient

	disks     map[uint32]bool
	volumes   []string
	formatted bool
	links     map[string]string
	files     map[string]string
	accounts  map[string]string
	mapping   string
	calls     []string
}

func newFake() (*fakeWindows, *node) {
	fake := &fakeWindows{
		disks: map[uint32]bool{0: true, 1: true}, volumes: []string{volumeID},
		links: map[string]string{}, files: map[string]string{}, accounts: map[string]string{},
	}
	return fake, &node{proxy: proxy{fake, fake, fake, fake}, machine: fake, host: "WIN"}
}

func (f *fakeWindows) log(format string, arguments ...any) {
	f.calls = append(f.calls, fmt.Sprintf(format, arguments...))
}

func (f *fakeWindows) run(_ context.Context, program string, arguments ...string) error {
	switch words := strings.Join(arguments, " "); {
	case program == "diskpart.exe":
		commands := f.files[arguments[1]]
		f.log("diskpart %s", strings.ReplaceAll(strings.TrimSpace(commands), "\r\n", "; "))
		f.disks[attachedDisk] = strings.Contains(commands, "attach vdisk") && !strings.Contains(commands, "detach")
		if !f.disks[attachedDisk] {
			delete(f.disks, attachedDisk)
		}
	case strings.HasPrefix(words, "user ") && arguments[2] != "/delete":
		f.accounts[arguments[1]] = arguments[2]
	case strings.HasPrefix(words, "session "):
		f.mapping = ""
	default:
		f.log("%s %s", program, words)
	}
	return nil
}

func (f *fakeWindows) resolve(path string) string {
	for link, target := range f.links {
		if rest, within := strings.CutPrefix(path, link); within {
			return f.resolve(target + rest)
		}
	}
	return path
}

func (f *fakeWindows) writeFile(path, text string) error {
	f.files[f.resolve(path)] = text
	return nil
}

func (f *fakeWindows) readFile(path string) (string, error) {
	if strings.HasPrefix(path, `\\WIN\`) && f.mapping != f.accounts[account] {
		return "", errors.New("the user name or password is incorrect")
	}
	place := f.resolve(path)
	text, found := f.files[place]
	if !found || strings.HasPrefix(place, volumeID) && !f.disks[attachedDisk] {
		return "", fs.ErrNotExist
	}
	return text, nil
}

func (f *fakeWindows) makeDirectory(path string) error {
	f.links[`\\WIN\`+shareName] = path
	return nil
}

func (f *fakeWindows) removeFile(path string) error {
	f.log("remove %s", path)
	return nil
}

func (f *fakeWindows) Rescan(context.Context, *diskapi.RescanRequest, ...grpc.CallOption) (*diskapi.RescanResponse, error) {
	f.log("Rescan")
	return &diskapi.RescanResponse{}, nil
}

func (f *fakeWindows) GetDiskState(_ context.Context, in *diskapi.GetDiskStateRequest, _ ...grpc.CallOption) (*diskapi.GetDiskStateResponse, error) {
	if !f.disks[in.DiskNumber] {
		return nil, errors.New("not found")
	}
	return &diskapi.GetDiskStateResponse{}, nil
}

func (f *fakeWindows) SetDiskState(_ context.Context, in *diskapi.SetDiskStateRequest, _ ...grpc.CallOption) (*diskapi.SetDiskStateResponse, error) {
	f.log("SetDiskState %d %t", in.DiskNumber, in.IsOnline)
	return &diskapi.SetDiskStateResponse{}, nil
}

func (f *fakeWindows) PartitionDisk(_ context.Context, in *diskapi.PartitionDiskRequest, _ ...grpc.CallOption) (*diskapi.PartitionDiskResponse, error) {
	f.log("PartitionDisk %d", in.DiskNumber)
	return &diskapi.PartitionDiskResponse{}, nil
}

func (f *fakeWindows) ListVolumesOnDisk(context.Context, *volumeapi.ListVolumesOnDiskRequest, ...grpc.CallOption) (*volumeapi.ListVolumesOnDiskResponse, error) {
	return &volumeapi.ListVolumesOnDiskResponse{VolumeIds: f.volumes}, nil
}

func (f *fakeWindows) IsVolumeFormatted(context.Context, *volumeapi.IsVolumeFormattedRequest, ...grpc.CallOption) (*volumeapi.IsVolumeFormattedResponse, error) {
	return &volumeapi.IsVolumeFormattedResponse{Formatted: f.formatted}, nil
}

func (f *fakeWindows) FormatVolume(_ context.Context, in *volumeapi.FormatVolumeRequest, _ ...grpc.CallOption) (*volumeapi.FormatVolumeResponse, error) {
	f.log("FormatVolume %s", in.VolumeId)
	return &volumeapi.FormatVolumeResponse{}, nil
}

func (f *fakeWindows) MountVolume(_ context.Context, in *volumeapi.MountVolumeRequest, _ ...grpc.CallOption) (*volumeapi.MountVolumeResponse, error) {
	f.log("MountVolume %s", in.TargetPath)
	f.links[in.TargetPath] = in.VolumeId
	return &volumeapi.MountVolumeResponse{}, nil
}

func (f *fakeWindows) GetVolumeIDFromTargetPath(_ context.Context, in *volumeapi.GetVolumeIDFromTargetPathRequest, _ ...grpc.CallOption) (*volumeapi.GetVolumeIDFromTargetPathResponse, error) {
	return &volumeapi.GetVolumeIDFromTargetPathResponse{VolumeId: f.links[in.TargetPath]}, nil
}

func (f *fakeWindows) UnmountVolume(_ context.Context, in *volumeapi.UnmountVolumeRequest, _ ...grpc.CallOption) (*volumeapi.UnmountVolumeResponse, error) {
	f.log("UnmountVolume %s %s", in.VolumeId, in.TargetPath)
	return &volumeapi.UnmountVolumeResponse{}, nil
}

func (f *fakeWindows) NewSmbGlobalMapping(_ context.Context, in *smbapi.NewSmbGlobalMappingRequest, _ ...grpc.CallOption) (*smbapi.NewSmbGlobalMappingResponse, error) {
	f.log("NewSmbGlobalMapping %s %s %s", in.RemotePath, in.Username, in.LocalPath)
	f.mapping = in.Password
	if in.LocalPath != "" {
		f.links[in.LocalPath] = in.RemotePath
	}
	return &smbapi.NewSmbGlobalMappingResponse{}, nil
}

func (f *fakeWindows) RemoveSmbGlobalMapping(_ context.Context, in *smbapi.RemoveSmbGlobalMappingRequest, _ ...grpc.CallOption) (*smbapi.RemoveSmbGlobalMappingResponse, error) {
	f.log("RemoveSmbGlobalMapping %s", in.RemotePath)
	return &smbapi.RemoveSmbGlobalMappingResponse{}, nil
}

func (f *fakeWindows) Mkdir(context.Context, *filesapi.MkdirRequest, ...grpc.CallOption) (*filesapi.MkdirResponse, error) {
	return &filesapi.MkdirResponse{}, nil
}

func (f *fakeWindows) Rmdir(_ context.Context, in *filesapi.RmdirRequest, _ ...grpc.CallOption) (*filesapi.RmdirResponse, error) {
	f.log("Rmdir %s", in.Path)
	return &filesapi.RmdirResponse{}, nil
}

func (f *fakeWindows) CreateSymlink(_ context.Context, in *filesapi.CreateSymlinkRequest, _ ...grpc.CallOption) (*filesapi.CreateSymlinkResponse, error) {
	f.log("CreateSymlink %s", in.TargetPath)
	f.links[in.TargetPath] = in.SourcePath
	return &filesapi.CreateSymlinkResponse{}, nil
}

func performSteps(t *testing.T, n *node, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := steps[name](n, context.Background()); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

func TestADiskIsStagedPublishedLostAndUnmounted(t *testing.T) {
	fake, n := newFake()
	performSteps(t, n, "mount", "lose")
	if err := n.read(podLink); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a lost disk was read: %v", err)
	}
	performSteps(t, n, "return", "unmount")
	expected := []string{
		"diskpart create vdisk file=" + diskFile + " maximum=512 type=expandable; attach vdisk",
		"Rescan",
		"SetDiskState 2 true",
		"PartitionDisk 2",
		"FormatVolume " + volumeID,
		"MountVolume " + diskMount,
		"CreateSymlink " + podLink,
		"diskpart select vdisk file=" + diskFile + "; detach vdisk",
		"diskpart select vdisk file=" + diskFile + "; attach vdisk",
		"Rmdir " + podLink,
		"UnmountVolume " + volumeID + " " + diskMount,
		"Rmdir " + diskMount,
		"diskpart select vdisk file=" + diskFile + "; detach vdisk",
		"remove " + diskFile,
	}
	if !slices.Equal(fake.calls, expected) {
		t.Errorf("calls:\n%s", strings.Join(fake.calls, "\n"))
	}
}

func TestADiskThatIsNotAsExpectedIsNotFormatted(t *testing.T) {
	for name, spoil := range map[string]func(*fakeWindows){
		"formatted already": func(f *fakeWindows) { f.formatted = true },
		"two volumes":       func(f *fakeWindows) { f.volumes = append(f.volumes, "other") },
		"no new disk":       func(f *fakeWindows) { f.disks[attachedDisk] = true },
	} {
		fake, n := newFake()
		spoil(fake)
		err := n.mount(context.Background())
		formatted := slices.ContainsFunc(fake.calls, func(call string) bool { return strings.HasPrefix(call, "FormatVolume") })
		if err == nil || formatted {
			t.Errorf("%s: error %v, calls %v", name, err, fake.calls)
		}
	}
}

func TestAShareIsMappedAndMappedAnewWithTheNewPassword(t *testing.T) {
	fake, n := newFake()
	performSteps(t, n, "share", "follow")
	first := fake.accounts[account]
	performSteps(t, n, "rotate")
	if err := n.read(n.remotePath()); err == nil {
		t.Error("the share was read with the old password")
	}
	performSteps(t, n, "remap", "unshare")
	if last := fake.accounts[account]; last == first || len(last) != 14 {
		t.Errorf("password %q after %q", last, first)
	}
	mapped := slices.DeleteFunc(slices.Clone(fake.calls), func(call string) bool { return !strings.Contains(call, "GlobalMapping") })
	expected := []string{
		`NewSmbGlobalMapping \\WIN\kubewin-test WIN\kubewin-share ` + shareMount,
		`NewSmbGlobalMapping \\WIN\kubewin-test WIN\kubewin-share `,
		`RemoveSmbGlobalMapping \\WIN\kubewin-test`,
	}
	if !slices.Equal(mapped, expected) {
		t.Errorf("mappings: %q", mapped)
	}
}
