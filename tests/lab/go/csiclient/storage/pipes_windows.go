// Copyright (c) 2026, kubewin.csi contributors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"errors"

	disk "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	files "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	smb "github.com/kubernetes-csi/csi-proxy/client/groups/smb/v1"
	volume "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
)

// openPipes connects to the pipes that drivers mount. They stay open until the program ends.
func openPipes() (proxy, error) {
	disks, diskError := disk.NewClient()
	volumes, volumeError := volume.NewClient()
	shares, smbError := smb.NewClient()
	directories, filesError := files.NewClient()
	return proxy{disks, volumes, shares, directories}, errors.Join(diskError, volumeError, smbError, filesError)
}
