// Package docker_test checks that the container files fit the program: a service for every stage,
// under the names and limits that the program expects.
package docker_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/interim/redis"
	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/registry"
)

//go:generate go test . -run ^TestGenerated -update

// TestGeneratedServices: each stage has a service with a token and with the settings that its
// worker alone uses.
func TestGeneratedServices(t *testing.T) {
	var services, stages strings.Builder
	for i, stage := range registry.Stages() {
		if i > 0 {
			services.WriteString("\n")
			stages.WriteString(" ")
		}
		stages.WriteString(string(stage))
		fmt.Fprintf(&services, "  %[1]s:\n    <<: *worker\n    command: [worker, %[1]s]\n    environment:\n      <<: *worker-environment\n", stage)
		for _, name := range config.StageSettings(stage) {
			absent := "-"
			if name == "HOLDFAST_SECRET_KEY" {
				absent = "?seals credentials at rest, see docker/env.example"
			}
			fmt.Fprintf(&services, "      %s: ${%[1]s:%s}\n", name, absent)
		}
		fmt.Fprintf(&services, "      HOLDFAST_TOKEN: ${HOLDFAST_TOKEN_%s:-}\n", strings.ToUpper(string(stage)))
	}
	generatedtest.Part(t, "docker/compose.yaml", "workers", services.String())
	generatedtest.Part(t, "docker/tokens.sh", "stages", "stages='"+stages.String()+"'\n")
}

func TestEveryStageHasItsService(t *testing.T) {
	project := load(t, withTokens())
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
		if token := service.Environment["HOLDFAST_TOKEN"]; token != nil && *token != "the "+string(stage)+" token" {
			t.Errorf("service %s has the token %q, want one of its own", stage, *token)
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

// TestServicesHoldTheirSecretsAlone: each service gets the secrets of its role, and no others.
func TestServicesHoldTheirSecretsAlone(t *testing.T) {
	all := config.AllSecrets()
	for name, service := range load(t, withTokens()).Services.Filter(isOurs) {
		stages := make([]registry.Stage, 0, len(service.Command)-1)
		for _, stage := range service.Command[1:] {
			stages = append(stages, registry.Stage(stage))
		}
		used := config.Secrets(service.Command[0], stages...)
		for _, secret := range all {
			if _, has := service.Environment[secret]; has != slices.Contains(used, secret) {
				t.Errorf("service %s has %s: %t; its role uses %v", name, secret, has, used)
			}
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

// TestRolesStartWithWhatTheyAreTold: all settings are known and valid, and none is missing.
func TestRolesStartWithWhatTheyAreTold(t *testing.T) {
	for name, service := range load(t, withTokens()).Services.Filter(isOurs) {
		t.Run(name, func(t *testing.T) {
			for variable, value := range service.Environment {
				t.Setenv(variable, *value)
			}
			c, err := config.Load(t.Context(), config.Default())
			if err != nil {
				t.Error(err)
			}
			needs := map[string][]string{"registry": config.RegistryNeeds, "worker": config.WorkerNeeds, "migrate": {"DATABASE_URL"}}
			if err := c.Require(service.Command[0], needs[service.Command[0]]...); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSecretsAreAskedFor: no secret has a default, and compose names a missing one.
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

// TestImageHoldsTheBinaryAlone reads the Dockerfile: the last stage begins from scratch and runs as
// a numbered user other than root.
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

const redisPassword = "0123456789abcdef"

// TestRedisAsksForItsPassword runs compose's command on a real redis-server: it requires the
// password, no command line shows it, the workers have it, and the health check succeeds only with
// it.
func TestRedisAsksForItsPassword(t *testing.T) {
	project := load(t, withTokens())
	service, err := project.GetService("redis")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		proctest.Absent(t, "redis-server (apt-get install redis-server)", err)
	}
	line := append(slices.Clone([]string(service.Entrypoint)), service.Command...)
	if text := strings.Join(line, " "); strings.Contains(text, redisPassword) {
		t.Errorf("the password stands in the command line: %s", text)
	}
	env := os.Environ()
	for name, value := range service.Environment {
		env = append(env, name+"="+*value)
	}
	var port string
	healthy := func(ctx context.Context, env []string) bool {
		check := exec.CommandContext(ctx, "sh", "-c", strings.Replace(service.HealthCheck.Test[1], "redis-cli", "redis-cli -p "+port, 1))
		check.Env = env
		return check.Run() == nil
	}
	folder := t.TempDir()
	var server *proctest.Server
	err = proctest.OnFreePort(t, func(address string) error {
		_, port, _ = net.SplitHostPort(address)
		run := slices.Clone(line)
		run[len(run)-1] = strings.Replace(run[len(run)-1], "redis-server ", "redis-server --bind 127.0.0.1 --port "+port+" --dir "+folder+" ", 1)
		cmd := exec.Command(run[0], run[1:]...)
		cmd.Env = env
		server, err = proctest.Start(cmd, func(ctx context.Context) bool { return healthy(ctx, env) })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.End(os.Kill) })
	if healthy(t.Context(), append(os.Environ(), "REDIS_PASSWORD=another")) {
		t.Error("it is well with another password")
	}
	for address, works := range map[string]bool{
		*project.Services["download"].Environment["HOLDFAST_REDIS_URL"]: true, "redis://redis:6379/0": false,
	} {
		s, err := redis.Open(strings.Replace(address, "redis:6379", "127.0.0.1:"+port, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Put(t.Context(), interim.Attempt{ItemID: "item", N: 1}, map[string][]byte{"k": []byte("v")})
		if works != (err == nil) || !works && !strings.Contains(err.Error(), "NOAUTH") {
			t.Errorf("%s: %v, want that it works: %t", address, err, works)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if kept, err := os.ReadDir(filepath.Join(folder, "appendonlydir")); err != nil || len(kept) == 0 {
		t.Errorf("nothing is kept over a restart: %v, %v", kept, err)
	}
}

// environment is the least environment for compose.
func environment() map[string]string {
	return map[string]string{
		"POSTGRES_PASSWORD": "p", "REDIS_PASSWORD": redisPassword, "HOLDFAST_SECRET_KEY": "0123456789abcdef0123456789abcdef", "HOLDFAST_RECEIPT_KEY": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
	}
}

// withTokens is the environment after docker/tokens.sh.
func withTokens() map[string]string {
	env := environment()
	for _, stage := range registry.Stages() {
		env["HOLDFAST_TOKEN_"+strings.ToUpper(string(stage))] = "the " + string(stage) + " token"
	}
	return env
}

// TestTokensAreMade: the script makes its tokens in the database of the Registry's service.
func TestTokensAreMade(t *testing.T) {
	text, err := os.ReadFile("tokens.sh")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), " registry token create --database --again --name ") {
		t.Error("tokens.sh does not make them in the database")
	}
	if info, err := os.Stat("tokens.sh"); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("tokens.sh cannot be run: %v", err)
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

// ours returns the services that run holdfast.
func ours(t *testing.T) types.Services {
	t.Helper()
	return load(t, environment()).Services.Filter(isOurs)
}

func isOurs(service types.ServiceConfig) bool { return strings.HasPrefix(service.Image, "holdfast:") }
