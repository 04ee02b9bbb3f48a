package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage/open"
)

// Storage is one preservation storage.
type Storage struct {
	Name    string
	Address string // as open.URL takes it
}

// Storages returns the preservation storages, [registry.DefaultStorage] first; none if the variable
// is not set. Its error names the variable at fault; Load has checked it.
func (c Config) Storages() ([]Storage, error) {
	all, err := parseStorages(c.StorageURL)
	if err == nil {
		return all, nil
	}
	var f *Fault
	if wrong := fault("STORAGE_URL", c.StorageURL, nil); errors.As(wrong, &f) {
		f.Err = err // it contains no secret
	}
	return all, f
}

// parseStorages parses addresses separated by spaces or commas, each with or without NAME= before
// it. Its errors quote valid storage names only, because the rest may be secret.
func parseStorages(text string) (all []Storage, err error) {
	var errs []error
	for _, word := range splitStorages(text) {
		s := Storage{Name: registry.DefaultStorage, Address: word}
		if name, address, ok := strings.Cut(word, "="); ok && !strings.Contains(name, ":") {
			s = Storage{Name: name, Address: address}
		}
		switch {
		case registry.CheckStorageName(s.Name) != nil:
			errs = append(errs, fmt.Errorf("number %d has an invalid name: use small letters, digits, - and _, and not %s", len(all)+1, registry.DefaultStaging))
			s.Name = ""
		case !isURL(s.Address, "file", "s3"):
			errs = append(errs, fmt.Errorf("number %d has an invalid address", len(all)+1))
		}
		for _, other := range all {
			if other.Name == s.Name && s.Name != "" {
				errs = append(errs, fmt.Errorf("two storages are called %q; give each its own name: NAME=ADDRESS", s.Name))
			}
			if open.Overlap(other.Address, s.Address) {
				errs = append(errs, fmt.Errorf("storages %q and %q are the same place, or one is inside the other", other.Name, s.Name))
			}
		}
		if all = append(all, s); s.Name == registry.DefaultStorage {
			all[0], all[len(all)-1] = all[len(all)-1], all[0]
		}
	}
	return all, errors.Join(errs...)
}

// splitStorages splits the setting at spaces and commas, except at commas before the parameters of
// a layout: file:///objects?layout=0006,delimiter=/ is one address.
func splitStorages(text string) (words []string) {
	for field := range strings.FieldsSeq(text) {
		begun := false
		for word := range strings.SplitSeq(field, ",") {
			switch {
			case begun && ofLayout(words[len(words)-1], word):
				words[len(words)-1] += "," + word
			case word != "":
				words, begun = append(words, word), true
			}
		}
	}
	return words
}

// ofLayout reports whether a word after a comma is a parameter of the layout that address ends
// with: NAME=VALUE, and not a storage.
func ofLayout(address, word string) bool {
	_, query, _ := strings.Cut(address, "?")
	parameters := strings.Split(query, "&")
	return strings.HasPrefix(parameters[len(parameters)-1], "layout=") && strings.Contains(word, "=") && !strings.Contains(word, ":/")
}
