// Copyright (c) 2026, kubewin.csi contributors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"crypto/rand"
	"fmt"

	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	smbapi "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	volumeapi "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
)

const (
	// Where the kubelet's CSI code and csi-proxy's default -kubelet-path have them.
	csiDirectory = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\`
	diskStaging  = csiDirectory + `disk.test\0001`
	diskMount    = diskStaging + `\globalmount`
	podDirectory = `C:\var\lib\kubelet\pods\kubewin-test\volumes\kubernetes.io~csi\disk`
	podLink      = podDirectory + `\mount`
	shareStaging = csiDirectory + `smb.test\0001`
	shareMount   = shareStaging + `\globalmount`

	diskFile  = `C:\kubewin-test.vhdx`
	script    = `C:\kubewin-test-diskpart.txt`
	shareName = "kubewin-test"
	shareRoot = `C:\kubewin-test-share`
	account   = "kubewin-share"
	proof     = `\proof.txt`
	content   = "written through csi-proxy's mount"

	// No machine of the workflow has a disk with a higher number.
	maxDiskNumber = 15
)

// proxy has the groups of csi-proxy's API that drivers use.
type proxy struct {
	disks       diskapi.DiskClient
	volumes     volumeapi.VolumeClient
	shares      smbapi.SmbClient
	directories filesapi.FilesystemClient
}

// machine is what the steps use of Windows besides csi-proxy.
type machine interface {
	run(ctx context.Context, program string, arguments ...string) error
	writeFile(path, text string) error
	readFile(path string) (string, error)
	makeDirectory(path string) error
	removeFile(path string) error
}

type node struct {
	proxy
	machine
	host string
}

var steps = map[string]func(*node, context.Context) error{
	"mount":   (*node).mount,
	"lose":    (*node).lose,
	"return":  (*node).restore,
	"unmount": (*node).unmount,
	"share":   (*node).share,
	"follow":  (*node).follow,
	"rotate":  (*node).rotate,
	"remap":   (*node).remap,
	"unshare": (*node).unshare,
}

// mount makes and attaches a disk, and stages and publishes its volume as a driver does for a first pod.
func (n *node) mount(ctx context.Context) error {
	before := n.findDisks(ctx)
	if err := n.diskpart(ctx, "create vdisk file="+diskFile+" maximum=512 type=expandable", "attach vdisk"); err != nil {
		return err
	}
	if _, err := n.disks.Rescan(ctx, &diskapi.RescanRequest{}); err != nil {
		return err
	}
	number, err := findNewDisk(before, n.findDisks(ctx))
	if err != nil {
		return err
	}
	if _, err := n.disks.SetDiskState(ctx, &diskapi.SetDiskStateRequest{DiskNumber: number, IsOnline: true}); err != nil {
		return err
	}
	if _, err := n.disks.PartitionDisk(ctx, &diskapi.PartitionDiskRequest{DiskNumber: number}); err != nil {
		return err
	}
	listed, err := n.volumes.ListVolumesOnDisk(ctx, &volumeapi.ListVolumesOnDiskRequest{DiskNumber: number})
	if err != nil {
		return err
	}
	if len(listed.VolumeIds) != 1 {
		return fmt.Errorf("disk %d has the volumes %q, expected one", number, listed.VolumeIds)
	}
	if err := n.format(ctx, listed.VolumeIds[0]); err != nil {
		return err
	}
	if err := n.makeDirectories(ctx, diskMount, podDirectory); err != nil {
		return err
	}
	request := &volumeapi.MountVolumeRequest{VolumeId: listed.VolumeIds[0], TargetPath: diskMount}
	if _, err := n.volumes.MountVolume(ctx, request); err != nil {
		return err
	}
	link := &filesapi.CreateSymlinkRequest{SourcePath: diskMount, TargetPath: podLink}
	if _, err := n.directories.CreateSymlink(ctx, link); err != nil {
		return err
	}
	return n.exchange(podLink, diskMount)
}

func (n *node) format(ctx context.Context, volume string) error {
	answer, err := n.volumes.IsVolumeFormatted(ctx, &volumeapi.IsVolumeFormattedRequest{VolumeId: volume})
	if err != nil {
		return err
	}
	if answer.Formatted {
		return fmt.Errorf("volume %s of a new disk is formatted", volume)
	}
	_, err = n.volumes.FormatVolume(ctx, &volumeapi.FormatVolumeRequest{VolumeId: volume})
	return err
}

// lose takes the disk away from under its mount, as a detach on the hypervisor's side does.
func (n *node) lose(ctx context.Context) error {
	return n.diskpart(ctx, "select vdisk file="+diskFile, "detach vdisk")
}

// restore attaches the disk again; its volume has to be found where it was mounted.
func (n *node) restore(ctx context.Context) error {
	if err := n.diskpart(ctx, "select vdisk file="+diskFile, "attach vdisk"); err != nil {
		return err
	}
	return n.read(podLink)
}

func (n *node) unmount(ctx context.Context) error {
	if _, err := n.directories.Rmdir(ctx, &filesapi.RmdirRequest{Path: podLink}); err != nil {
		return err
	}
	answer, err := n.volumes.GetVolumeIDFromTargetPath(ctx, &volumeapi.GetVolumeIDFromTargetPathRequest{TargetPath: diskMount})
	if err != nil {
		return err
	}
	request := &volumeapi.UnmountVolumeRequest{VolumeId: answer.VolumeId, TargetPath: diskMount}
	if _, err := n.volumes.UnmountVolume(ctx, request); err != nil {
		return err
	}
	if _, err := n.directories.Rmdir(ctx, &filesapi.RmdirRequest{Path: diskMount}); err != nil {
		return err
	}
	if err := n.lose(ctx); err != nil {
		return err
	}
	return n.removeFile(diskFile)
}

// share makes an account and a share, and maps it as a driver does for a first pod. By the machine's own name NTLM's check of
// loopback passes (Microsoft, KB 926642).
func (n *node) share(ctx context.Context) error {
	password := newPassword()
	if err := n.run(ctx, "net.exe", "user", account, password, "/add"); err != nil {
		return err
	}
	if err := n.makeDirectory(shareRoot); err != nil {
		return err
	}
	if err := n.run(ctx, "icacls.exe", shareRoot, "/grant", account+":(OI)(CI)M"); err != nil {
		return err
	}
	if err := n.run(ctx, "net.exe", "share", shareName+"="+shareRoot, "/grant:"+account+",change"); err != nil {
		return err
	}
	if err := n.makeDirectories(ctx, shareStaging); err != nil {
		return err
	}
	if err := n.mapShare(ctx, password, shareMount); err != nil {
		return err
	}
	return n.exchange(n.remotePath(), shareRoot)
}

// follow uses the link by which a pod would reach the share.
func (n *node) follow(context.Context) error {
	return n.exchange(shareMount, shareRoot)
}

// rotate changes the password of the share's account and ends its sessions, as an administrator does who forgets the nodes.
func (n *node) rotate(ctx context.Context) error {
	if err := n.run(ctx, "net.exe", "user", account, newPassword()); err != nil {
		return err
	}
	if err := n.run(ctx, "net.exe", "session", "/delete", "/y"); err != nil {
		return err
	}
	// What Windows says is for the log: the mapping's state is what the play reads.
	fmt.Println("the share after the rotation:", n.read(n.remotePath()))
	return nil
}

// remap maps the share with a password that is valid, as a driver does for the next pod.
func (n *node) remap(ctx context.Context) error {
	password := newPassword()
	if err := n.run(ctx, "net.exe", "user", account, password); err != nil {
		return err
	}
	if err := n.mapShare(ctx, password, ""); err != nil {
		return err
	}
	return n.read(n.remotePath())
}

func (n *node) unshare(ctx context.Context) error {
	request := &smbapi.RemoveSmbGlobalMappingRequest{RemotePath: n.remotePath()}
	if _, err := n.shares.RemoveSmbGlobalMapping(ctx, request); err != nil {
		return err
	}
	if _, err := n.directories.Rmdir(ctx, &filesapi.RmdirRequest{Path: shareMount}); err != nil {
		return err
	}
	if err := n.run(ctx, "net.exe", "share", shareName, "/delete", "/y"); err != nil {
		return err
	}
	return n.run(ctx, "net.exe", "user", account, "/delete")
}

// mapShare maps the share for the whole machine and makes a link to it, unless the link's path is empty.
func (n *node) mapShare(ctx context.Context, password, link string) error {
	_, err := n.shares.NewSmbGlobalMapping(ctx, &smbapi.NewSmbGlobalMappingRequest{
		RemotePath: n.remotePath(), LocalPath: link, Username: n.host + `\` + account, Password: password,
	})
	return err
}

func (n *node) remotePath() string {
	return `\\` + n.host + `\` + shareName
}

// findDisks lists the numbers of the disks. csi-proxy's own lists leave out a disk without location and IDs.
func (n *node) findDisks(ctx context.Context) map[uint32]bool {
	found := map[uint32]bool{}
	for number := uint32(0); number <= maxDiskNumber; number++ {
		if _, err := n.disks.GetDiskState(ctx, &diskapi.GetDiskStateRequest{DiskNumber: number}); err == nil {
			found[number] = true
		}
	}
	return found
}

func findNewDisk(before, after map[uint32]bool) (uint32, error) {
	var added []uint32
	for number := range after {
		if !before[number] {
			added = append(added, number)
		}
	}
	if len(added) != 1 {
		return 0, fmt.Errorf("%d disks were added, expected one: before %v, after %v", len(added), before, after)
	}
	return added[0], nil
}

func (n *node) makeDirectories(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		if _, err := n.directories.Mkdir(ctx, &filesapi.MkdirRequest{Path: path}); err != nil {
			return err
		}
	}
	return nil
}

// diskpart runs commands; it reads them from a file alone.
func (n *node) diskpart(ctx context.Context, commands ...string) error {
	text := ""
	for _, command := range commands {
		text += command + "\r\n"
	}
	if err := n.writeFile(script, text); err != nil {
		return err
	}
	return n.run(ctx, "diskpart.exe", "/s", script)
}

// newPassword makes a password of 14 characters: net.exe asks a question about longer ones.
func newPassword() string {
	return "Kw1-" + rand.Text()[:10]
}

// exchange writes a file in one directory and reads it in another one, which leads to the same place.
func (n *node) exchange(written, other string) error {
	if err := n.writeFile(written+proof, content); err != nil {
		return err
	}
	return n.read(other)
}

func (n *node) read(directory string) error {
	text, err := n.readFile(directory + proof)
	if err == nil && text != content {
		err = fmt.Errorf("%s has %q, expected %q", directory, text, content)
	}
	return err
}
