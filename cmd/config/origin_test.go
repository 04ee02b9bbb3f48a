package config_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/cmd/config"
)

// clear makes the settings that a source fills empty, so that the end of the test empties them again.
func clear(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Setenv(config.Prefix+"_"+name, "")
	}
}

func configFile(t *testing.T, lines ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.env")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOLDFAST_CONFIG_FILE", path)
}

// parameterStore serves GetParametersByPath, two parameters a page, and refuses the path /closed.
func parameterStore(t *testing.T, parameters ...[2]string) {
	t.Helper()
	type parameter struct{ Name, Value string }
	type answer struct {
		Parameters []parameter
		NextToken  string `json:",omitempty"`
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Path, NextToken string
			WithDecryption  bool
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("X-Amz-Target") != "AmazonSSM.GetParametersByPath" || !in.WithDecryption {
			t.Errorf("request %s, %+v, %v", r.Header.Get("X-Amz-Target"), in, err)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if in.Path == "/closed" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"AccessDeniedException","message":"not for you"}`)
			return
		}
		var below []parameter
		for _, p := range parameters {
			if dir, _ := filepath.Split(p[0]); dir == in.Path+"/" {
				below = append(below, parameter{p[0], p[1]})
			}
		}
		var begin int
		_, _ = fmt.Sscan(in.NextToken, &begin)
		end := min(begin+2, len(below))
		a := answer{Parameters: below[begin:end]}
		if end < len(below) {
			a.NextToken = fmt.Sprint(end)
		}
		if err := json.NewEncoder(w).Encode(a); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_SSM": s.URL, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
}

// The environment comes before the file, the file before the parameters, and a path before the next.
func TestLoad_Order(t *testing.T) {
	set(t, map[string]string{"HOLDFAST_NAAN": "1", "HOLDFAST_PARAMETERS": "/holdfast/download, /holdfast"})
	clear(t, "PER_HOST", "GRACE", "TOKEN", "MAIL_FROM", "LEAST_RATE", "UPLOAD_DAYS", "DOWNLOAD_MAX_ATTEMPTS")
	configFile(t, "# of this server", "", "HOLDFAST_NAAN=2", ` HOLDFAST_GRACE = "1m" `, "HOLDFAST_DOWNLOAD_MAX_ATTEMPTS=7", "HOLDFAST_MAIL_FROM='a#b=c@example.org'")
	parameterStore(t,
		[2]string{"/holdfast/NAAN", "3"}, [2]string{"/holdfast/GRACE", "3s"}, [2]string{"/holdfast/PER_HOST", "3"},
		[2]string{"/holdfast/LEAST_RATE", "1KiB"}, [2]string{"/holdfast/UPLOAD_DAYS", "9"}, [2]string{"/holdfast/notify/TOKEN", "of another"},
		[2]string{"/holdfast/download/TOKEN", "hf_secret"}, [2]string{"/holdfast/download/PER_HOST", "4"},
	)
	settings, err := config.InForce(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	file := os.Getenv("HOLDFAST_CONFIG_FILE")
	got := map[string][2]string{}
	for _, s := range settings {
		if s.From != config.FromDefault {
			got[strings.TrimPrefix(s.Name, "HOLDFAST_")] = [2]string{s.Value, s.From}
		}
	}
	want := map[string][2]string{
		"CONFIG_FILE":           {file, "environment"},
		"PARAMETERS":            {"/holdfast/download, /holdfast", "environment"},
		"NAAN":                  {"1", "environment"},
		"GRACE":                 {"1m", file + ", line 4"},
		"DOWNLOAD_MAX_ATTEMPTS": {"7", file + ", line 5"},
		"MAIL_FROM":             {"a#b=c@example.org", file + ", line 6"},
		"PER_HOST":              {"4", "parameter /holdfast/download/PER_HOST"},
		"LEAST_RATE":            {"1KiB", "parameter /holdfast/LEAST_RATE"},
		"UPLOAD_DAYS":           {"9", "parameter /holdfast/UPLOAD_DAYS"},
		"TOKEN":                 {"", "parameter /holdfast/download/TOKEN"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	c, err := config.Load(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	if c.NAAN != "1" || c.PerHost != 4 || c.Token != "hf_secret" || c.Stages["download"].MaxAttempts != 7 {
		t.Errorf("loaded %+v", c)
	}
}

// Every fault of the sources is reported at once, with its place, and quotes no value of a secret.
func TestLoad_SourceFaults(t *testing.T) {
	set(t, map[string]string{"HOLDFAST_PARAMETERS": "/holdfast,/closed,relative"})
	clear(t, "GRACE", "PER_HOTS", "SECRET_KEY", "NAME")
	configFile(t, "HOLDFAST_GRACE=soon", "GRACE=1s", "HOLDFAST_CONFIG_FILE=other", "hunter2", "HOLDFAST_GRACE=1s", "HOLDFAST_SECRET_KEY=hunter3")
	parameterStore(t, [2]string{"/holdfast/PER_HOTS", "hunter4"})
	file := os.Getenv("HOLDFAST_CONFIG_FILE")
	_, err := config.Load(t.Context(), config.Default())
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		file + `, line 1: HOLDFAST_GRACE: found "soon"; expected a duration`,
		file + ", line 2: GRACE: a configuration file has names that begin with HOLDFAST_ or AWS_",
		file + ", line 3: a configuration file cannot name another one",
		file + ", line 4: not of the form NAME=VALUE",
		file + ", line 5: HOLDFAST_GRACE is in line 1, too",
		file + ", line 6: HOLDFAST_SECRET_KEY: found 7 characters",
		"parameter /holdfast/PER_HOTS: HOLDFAST_PER_HOTS: unknown; did you mean HOLDFAST_PER_HOST?",
		"HOLDFAST_PARAMETERS: read the parameters below /closed: ", "AccessDeniedException",
		"HOLDFAST_PARAMETERS: read the parameters below relative: a path begins with /",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter") {
		t.Errorf("a secret in\n%v", err)
	}
}

func TestLoad_NoFile(t *testing.T) {
	set(t, map[string]string{"HOLDFAST_CONFIG_FILE": filepath.Join(t.TempDir(), "absent.env")})
	if _, err := config.Load(t.Context(), config.Default()); err == nil || !strings.Contains(err.Error(), "HOLDFAST_CONFIG_FILE: open ") {
		t.Errorf("error %v", err)
	}
}

// A stage uses its own settings, those of all workers, and no others.
func TestInForce_UsedBy(t *testing.T) {
	set(t, nil)
	settings, err := config.InForce(t.Context(), config.Default())
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]string{}
	for _, s := range settings {
		for _, role := range []string{"registry", "download", "deliver"} {
			if s.UsedBy(role) {
				uses[strings.TrimPrefix(s.Name, "HOLDFAST_")] += role + " "
			}
		}
	}
	for name, want := range map[string]string{"DATABASE_URL": "registry ", "REDIS_URL": "download deliver ", "PER_HOST": "download ", "SMTP_URL": "deliver ", "NAAN": "registry download deliver "} {
		if uses[name] != want {
			t.Errorf("%s is used by %q, want %q", name, uses[name], want)
		}
	}
}
