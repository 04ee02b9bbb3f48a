// Package docker_test checks that the container files fit the program: a service for every stage, under the names and
// limits that the program expects.
package docker_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/holdfast/holdfast/registry"
)

// settings are the names of the program's environment (design section 8), without the prefix.
const settings = `DATABASE_URL NSQD_ADDR NSQLOOKUPD_ADDRS REDIS_URL STAGING_URL STORAGE_URL URL TOKEN NET_ALLOW MAX_ATTEMPTS
	CONCURRENCY LEASE GRACE LISTEN SMTP_URL EZID_URL NAAN NOID_TEMPLATE SECRET_KEY RECEIPT_KEY STAGING_FULL
	STAGING_FULL_UNESTIMATED TOPIC_PREFIX CLAMD_ADDR SIEGFRIED_URL LOG_LEVEL`

func TestEveryStageHasItsService(t *testing.T) {
	project := load(t, environment())
	for _, stage := range registry.Stages() {
		service, err := project.GetService(string(stage))
		if err != nil {
			t.Errorf("stage %s has no service: %v", stage, err)
			continue
		}
		if want := []string{"worker", string(stage)}; !slices.Equal(service.Command, want) {
			t.Errorf("service %s runs %q, want %q", stage, service.Command, want)
		}
		for _, name := range []string{"URL", "TOKEN", "REDIS_URL", "NSQLOOKUPD_ADDRS", "STAGING_URL", "STORAGE_URL", "MAX_ATTEMPTS"} {
			if value := service.Environment["HOLDFAST_"+name]; value == nil || *value == "" {
				t.Errorf("service %s has no HOLDFAST_%s", stage, name)
			}
		}
		for _, name := range []string{"DATABASE_URL", "SECRET_KEY"} {
			if _, ok := service.Environment["HOLDFAST_"+name]; ok {
				t.Errorf("service %s holds HOLDFAST_%s, which is the Registry's alone", stage, name)
			}
		}
		for _, needed := range []string{"registry", "nsqd", "nsqlookupd", "redis"} {
			if service.DependsOn[needed].Condition != types.ServiceConditionHealthy {
				t.Errorf("service %s does not wait until %s is healthy", stage, needed)
			}
		}
	}
	for name, service := range project.Services {
		if len(service.Command) > 0 && service.Command[0] == "worker" && !slices.Contains(registry.Stages(), registry.Stage(name)) {
			t.Errorf("service %s is a worker of no stage", name)
		}
	}
}

func TestEveryServiceIsHealthChecked(t *testing.T) {
	project := load(t, environment())
	for _, name := range []string{"registry", "nsqd", "nsqlookupd", "redis", "postgres"} {
		if _, err := project.GetService(name); err != nil {
			t.Errorf("%v", err)
		}
	}
	for name, service := range project.Services {
		if name == "migrate" { // runs once and ends
			continue
		}
		if service.HealthCheck == nil || service.HealthCheck.Disable || len(service.HealthCheck.Test) == 0 {
			t.Errorf("service %s has no health check", name)
		}
	}
}

func TestOurServicesStopInTimeAndHoldNoPrivileges(t *testing.T) {
	for name, service := range ours(t) {
		grace, err := time.ParseDuration(*service.Environment["HOLDFAST_GRACE"])
		if err != nil {
			t.Errorf("service %s: %v", name, err)
		}
		if stop := time.Duration(*service.StopGracePeriod); stop < grace+10*time.Second {
			t.Errorf("service %s is killed after %v, want at least 10 s beyond its grace of %v", name, stop, grace)
		}
		if !service.ReadOnly || !slices.Contains(service.CapDrop, "ALL") || service.Privileged {
			t.Errorf("service %s may do more than it needs", name)
		}
	}
}

func TestOnlyKnownSettingsAreUsed(t *testing.T) {
	known := strings.Fields(settings)
	for name, service := range ours(t) {
		for variable := range service.Environment {
			setting, ok := strings.CutPrefix(variable, "HOLDFAST_")
			if !ok || !slices.Contains(known, setting) {
				t.Errorf("service %s sets %s, which holdfast refuses to start with", name, variable)
			}
		}
	}
}

// TestSecretsAreAskedFor: no secret has a default, and compose names the one that is missing.
func TestSecretsAreAskedFor(t *testing.T) {
	for name := range environment() {
		env := environment()
		delete(env, name)
		if _, err := parse(t, env); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("compose without %s: %v, want an error that names it", name, err)
		}
	}
	example, err := os.ReadFile("env.example")
	if err != nil {
		t.Fatal(err)
	}
	for name := range environment() {
		if !strings.Contains("\n"+string(example), "\n"+name+"=\n") {
			t.Errorf("env.example does not list %s without a value", name)
		}
	}
}

// TestImageHoldsTheBinaryAlone reads the Dockerfile: a last stage from nothing, run by a numbered user who is not root.
func TestImageHoldsTheBinaryAlone(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(string(text), "\nFROM scratch\n")
	if !ok {
		t.Fatal("the last stage is not FROM scratch")
	}
	for _, want := range []string{"\nUSER 65532:65532\n", "\nSTOPSIGNAL SIGTERM\n", `ENTRYPOINT ["/holdfast"]`, `CMD ["/holdfast", "health"]`} {
		if !strings.Contains(last, want) {
			t.Errorf("the last stage lacks %q", strings.TrimSpace(want))
		}
	}
	for _, want := range []string{"CGO_ENABLED=0", "ca-certificates.crt", "-X main.version="} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Dockerfile lacks %q", want)
		}
	}
}

// environment is the least that compose needs to be told.
func environment() map[string]string {
	return map[string]string{
		"POSTGRES_PASSWORD": "p", "HOLDFAST_SECRET_KEY": "s", "HOLDFAST_RECEIPT_KEY": "r", "HOLDFAST_TOKEN": "t",
	}
}

func load(t *testing.T, env map[string]string) *types.Project {
	t.Helper()
	project, err := parse(t, env)
	if err != nil {
		t.Fatalf("load compose.yaml: %v", err)
	}
	return project
}

func parse(t *testing.T, env map[string]string) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  ".",
		ConfigFiles: types.ToConfigFiles([]string{"compose.yaml"}),
		Environment: env,
	})
}

// ours are the services that run holdfast.
func ours(t *testing.T) types.Services {
	t.Helper()
	return load(t, environment()).Services.Filter(func(service types.ServiceConfig) bool {
		return strings.HasPrefix(service.Image, "holdfast:")
	})
}
