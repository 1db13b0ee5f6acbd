package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Strict decodes control arguments and refuses names that nobody knows.
func Strict(raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("args: %w", err)
	}
	return nil
}
