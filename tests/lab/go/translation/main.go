// Copyright (c) 2026, kubewin.csi contributors
// GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Translation answers what Kubernetes' own csi-translation-lib makes of in-tree volumes and StorageClasses.
//
// It reads one JSON document a line on stdin and writes one for each on stdout. A request names what to translate, and may
// carry another translation of it, which comes back in the same written form, so that the two can be compared.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	translation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

// request: exactly one of Volume, Inline and Class. Namespace: of the pod with the inline volume. Plugin: the class's.
type request struct {
	Volume    *core.PersistentVolume `json:"volume"`
	Inline    *core.Volume           `json:"inline"`
	Class     *storage.StorageClass  `json:"class"`
	Namespace string                 `json:"namespace"`
	Plugin    string                 `json:"plugin"`
	Ours      json.RawMessage        `json:"ours"`
}

type reply struct {
	Error string `json:"error,omitempty"`
	Made  any    `json:"made,omitempty"`
	Ours  any    `json:"ours,omitempty"`
}

func translate(asked request) (made any, err error) {
	// An inline vSphere volume with a storage policy makes the library panic.
	defer func() {
		if cause := recover(); cause != nil {
			made, err = nil, fmt.Errorf("panic: %v", cause)
		}
	}()
	translator, log := translation.New(), klog.Background()
	switch {
	case asked.Volume != nil:
		return translator.TranslateInTreePVToCSI(log, asked.Volume)
	case asked.Inline != nil:
		return translator.TranslateInTreeInlineVolumeToCSI(log, asked.Inline, asked.Namespace)
	case asked.Class != nil:
		return translator.TranslateInTreeStorageClassToCSI(log, asked.Plugin, asked.Class)
	}
	return nil, fmt.Errorf("nothing to translate")
}

func answer(asked request) (reply, error) {
	var said reply
	made, err := translate(asked)
	if err != nil {
		said.Error = err.Error()
	} else {
		said.Made = made
	}
	if len(asked.Ours) > 0 && string(asked.Ours) != "null" {
		var ours any = &core.PersistentVolume{}
		if asked.Class != nil {
			ours = &storage.StorageClass{}
		}
		if err := json.Unmarshal(asked.Ours, ours); err != nil {
			return said, err
		}
		said.Ours = ours
	}
	return said, nil
}

func main() {
	requests, replies := json.NewDecoder(os.Stdin), bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(replies)
	for {
		var asked request
		if err := requests.Decode(&asked); err != nil {
			break
		}
		said, err := answer(asked)
		if err == nil {
			err = encoder.Encode(said)
		}
		if err == nil {
			err = replies.Flush()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
