package config_test

import (
	"slices"
	"testing"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/registry"
)

// TestSecrets: each secret has somebody who uses it, and whoever is given others is told.
func TestSecrets(t *testing.T) {
	used := slices.Concat(config.Secrets("registry"), config.Secrets("migrate"), config.Secrets("worker", registry.Stages()...))
	for _, name := range config.AllSecrets() {
		if !slices.Contains(used, name) {
			t.Errorf("no role uses %s", name)
		}
	}
	set(t, map[string]string{
		"HOLDFAST_TOKEN": "t", "HOLDFAST_EZID_URL": "https://u:p@ezid.test", "HOLDFAST_DATABASE_URL": "sqlite:r.db", "HOLDFAST_SMTP_URL": "",
	})
	for _, tt := range []struct {
		role   string
		stages []registry.Stage
		want   []string
	}{
		{"worker", []registry.Stage{registry.Estimate}, []string{"HOLDFAST_DATABASE_URL", "HOLDFAST_EZID_URL"}},
		{"worker", []registry.Stage{registry.Estimate, registry.Process}, []string{"HOLDFAST_DATABASE_URL"}},
		{"registry", nil, []string{"HOLDFAST_EZID_URL", "HOLDFAST_TOKEN"}},
		{"broker", nil, []string{"HOLDFAST_DATABASE_URL", "HOLDFAST_EZID_URL", "HOLDFAST_TOKEN"}},
	} {
		if got := config.Unneeded(tt.role, tt.stages...); !slices.Equal(got, tt.want) {
			t.Errorf("%s %v does not use %v, want %v", tt.role, tt.stages, got, tt.want)
		}
	}
}
