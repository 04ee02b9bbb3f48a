package ocfl

import (
	"fmt"
	"io"
)

// ReadInventory reads an inventory as Encode wrote it, such as one that was planned and kept aside.
// name is for errors: an *InventoryError when the text is no valid inventory.
func ReadInventory(r io.Reader, name string) (*Inventory, error) {
	out, err := decodeInventory(r, name)
	if err != nil {
		return nil, fmt.Errorf("read inventory %q: %w", name, err)
	}
	if faults := onlyErrors(out.faults.Kept()); len(faults) > 0 {
		return nil, &InventoryError{Key: name, Faults: faults}
	}
	return &out.inv, nil
}
