package ocfl

import (
	"fmt"
	"io"
)

// ReadInventory reads an inventory as Encode writes it. If the text is not a valid inventory it
// returns an *InventoryError. name is for errors.
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
