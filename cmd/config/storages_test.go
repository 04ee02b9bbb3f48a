package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/config"
)

func TestStorages(t *testing.T) {
	for _, tt := range []struct {
		text, fault string
		want        []config.Storage
	}{
		{"file:///a", "", []config.Storage{{Name: "storage", Address: "file:///a"}}},
		{
			"second=s3://b/p?endpoint=http://h:1&region=r, file:///a\n", "",
			[]config.Storage{{Name: "storage", Address: "file:///a"}, {Name: "second", Address: "s3://b/p?endpoint=http://h:1&region=r"}},
		},
		{"storage=file:///a b=file:///b c=file:///c", "", []config.Storage{
			{Name: "storage", Address: "file:///a"}, {Name: "b", Address: "file:///b"}, {Name: "c", Address: "file:///c"},
		}},
		{"file:///a file:///b", `two storages are called "storage"`, nil},
		{"b=file:///a b=file:///b", `two storages are called "b"`, nil},
		{"file:///a b=file:///a/b", `storages "storage" and "b" are the same place, or one is inside the other`, nil},
		{"file:///a b=s3://x/p,c=s3://x/p/q", `storages "b" and "c"`, nil},
		{"file:///a s3cret!=file:///b", "number 2 has an invalid name", nil},
		{"staging=file:///a", "number 1 has an invalid name", nil},
		{"file:///a b=ftp://s3cret/", "number 2 has an invalid address", nil},
	} {
		set(t, map[string]string{"HOLDFAST_STORAGE_URL": tt.text})
		c, err := config.Load(t.Context(), config.Default())
		if tt.fault != "" {
			if err == nil || !strings.Contains(err.Error(), "HOLDFAST_STORAGE_URL") || !strings.Contains(err.Error(), tt.fault) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%q: %v, want %s", tt.text, err, tt.fault)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
		}
		if got, err := c.Storages(); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%q: %v %v, want %v", tt.text, got, err, tt.want)
		}
	}
}
