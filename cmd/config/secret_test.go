package config_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/registry"
)

// TestSecrets: each secret has a user, and a process with other secrets is warned.
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

// TestStageSettings: a stage gets the settings that name it or its kind, without those of all
// workers.
func TestStageSettings(t *testing.T) {
	for stage, want := range map[registry.Stage][]string{
		registry.Apply:     nil,
		registry.Provision: {"HOLDFAST_ROOM_WAIT"},
		registry.Scan:      {"HOLDFAST_CLAMD_ADDR"},
		registry.Estimate: {
			"HOLDFAST_HOST_BYTES_PER_SECOND", "HOLDFAST_HOST_REQUESTS_PER_SECOND", "HOLDFAST_LEAST_RATE", "HOLDFAST_PER_HOST", "HOLDFAST_SECRET_KEY",
			"HOLDFAST_UNKNOWN_SIZE_BYTES",
		},
	} {
		if got := config.StageSettings(stage); !slices.Equal(got, want) {
			t.Errorf("%s is given %v, want %v", stage, got, want)
		}
	}
	// Each word of a tag is a role, a kind of stages or a stage: a misspelt one would give a
	// setting to nobody.
	words := []string{"registry", "up", "migrate", "broker", "commands", "worker", "fetching"}
	for _, stage := range registry.Stages() {
		words = append(words, string(stage))
	}
	for field := range reflect.TypeFor[config.Config]().Fields() {
		for _, word := range strings.Fields(field.Tag.Get("for")) {
			if !slices.Contains(words, word) {
				t.Errorf("%s is for %q, which is no role and no stage", field.Name, word)
			}
		}
	}
}
