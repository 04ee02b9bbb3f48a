package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/config"
)

func TestRequire(t *testing.T) {
	set(t, map[string]string{"HOLDFAST_URL": "http://r:8080", "HOLDFAST_NSQLOOKUPD_ADDRS": " a:4161 ,, b:4161 ", "HOLDFAST_REDIS_URL": "http://not.redis"})
	c, err := config.Load(t.Context(), config.Default())
	if err == nil {
		t.Fatal("an address of Redis that is none was accepted")
	}
	if strings.Join(c.NSQLookupdAddrs, " ") != "a:4161 b:4161" {
		t.Errorf("lookups are read as %q", c.NSQLookupdAddrs)
	}
	err = c.Require("worker", config.WorkerNeeds...)
	var missing *config.MissingError
	if !errors.As(err, &missing) {
		t.Fatalf("require: %v, want a *MissingError", err)
	}
	for name, want := range map[string]bool{"TOKEN": true, "STAGING_URL": true, "STORAGE_URL": true, "_URL: not set": true, "HOLDFAST_URL": false, "REDIS": false, "NSQ": false} {
		if got := strings.Contains(err.Error(), name); got != want {
			t.Errorf("%s is missing: %t, want %t:\n%v", name, got, want, err)
		}
	}
	set(t, nil)
	if c, err = config.Load(t.Context(), config.Default()); err != nil {
		t.Fatal(err)
	}
	if err := c.Require("registry", config.RegistryNeeds...); !strings.Contains(err.Error(), "HOLDFAST_NSQD_ADDR or HOLDFAST_NSQLOOKUPD_ADDRS: not set, and holdfast registry needs it; expected host:port") {
		t.Errorf("require: %v", err)
	}
}
