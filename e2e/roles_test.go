package e2e

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast/holdfast/interim/redis/redistest"
	"github.com/holdfast/holdfast/registry"
)

// few is a fleet of few processes that serves all stages.
var few = []string{"expand,estimate,provision", "download", "download", "process,record,notify", "report,apply,cleanup"}

// TestRoles takes a batch of everything through separate roles, one process for each stage and two
// for one, on both databases. The result equals that of one process, nothing is left over, and each
// worker served only its stages.
func TestRoles(t *testing.T) {
	for name, spec := range map[string]fleetSpec{"SQLite": {}, "PostgreSQL": {postgres: true, registries: 2, brokers: 2}, "S3": {s3: true, workers: few}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := newChaosSource(t, 1)
			f := newFleet(t, spec)
			for _, payload := range []string{"/files.checkm", "/manifests.checkm", "/containers.checkm", "/bag.zip"} {
				if s, code := f.submit(source.url + payload); code != 0 {
					t.Errorf("submit %s: exit=%d summary=%+v", payload, code, s)
				}
			}
			if r := f.run("object", "verify", "--all"); r.code != 0 {
				t.Errorf("verify ended with %d: %s%s", r.code, r.stdout, r.stderr)
			}
			both := f.query("registry.db", `SELECT stage, COUNT(DISTINCT worker) FROM attempt WHERE stage = 'download' GROUP BY stage`)
			if len(both) != 1 || both[0] != "download|2" {
				t.Errorf("downloads were served by %v, want both processes", both)
			}
			f.stopAll()
			f.checkInvariants()
		})
	}
}

// TestRoles_ServersKilled kills one of two brokers during a batch, with all its messages, then the
// Registry, and then the other broker once the first is back. Nothing is stranded, and no try is
// charged (R19).
func TestRoles_ServersKilled(t *testing.T) {
	t.Parallel()
	s := serveSlowly(t)
	f := newFleet(t, fleetSpec{brokers: 2, workers: few, env: []string{fourSlots}})
	s.inTurns(f.until, func() { f.run("submit", s.server+"/batch.checkm") },
		func() { f.proc("broker", 0).kill() },
		func() { f.proc("registry", 0).restart() },
		func() {
			f.proc("broker", 0).start()
			f.proc("broker", 1).kill()
		},
	)
	f.finishUncharged("the death of servers")
	f.stopAll() // cleanly, with one broker dead
	f.checkInvariants()
}

// TestRoles_Stopped stops one of two download workers, and then all workers, while all slots wait
// for a silent source. Each ends by itself, cleanly and soon, no attempt is counted, and other
// workers resume the work (I5).
func TestRoles_Stopped(t *testing.T) {
	t.Parallel()
	source := newStalling(t, 12)
	f := newFleet(t, fleetSpec{workers: few, env: []string{fourSlots}})
	batch := f.begin(source.url + "/batch.checkm")
	const slots, soon = 4, 5 * time.Second
	source.await(t, 2*slots)
	if took := f.proc("download", 0).stop(); took > soon {
		t.Errorf("a busy worker ended %v after the signal", took)
	}
	// Somebody else goes on: what was released, too, as soon as there is a slot.
	var ending sync.WaitGroup
	for _, p := range f.workers() {
		ending.Go(func() {
			if took := p.stop(); took > soon {
				t.Errorf("%s ended %v after the signal", p.name, took)
			}
		})
	}
	ending.Wait()
	for _, p := range f.workers() {
		if strings.Contains(p.log(), "abandoned") {
			t.Errorf("a step of %s did not end when it was told to", p.name)
		}
	}
	f.checkHandedOver(2 * slots)
	source.healed.Store(true)
	f.startAll()
	f.watch(batch)
	f.stopAll()
	f.checkInvariants()
}

// TestRoles_SecondSignal ends a busy worker at once during its drain, and another one while the
// Registry is away, within the grace period and cleanly. Nothing is lost.
func TestRoles_SecondSignal(t *testing.T) {
	t.Parallel()
	source := newStalling(t, 12)
	const grace = 2 * time.Second
	f := newFleet(t, fleetSpec{workers: few, env: []string{fourSlots, "HOLDFAST_LEASE=2s", "HOLDFAST_GRACE=" + grace.String()}})
	batch := f.begin(source.url + "/batch.checkm")
	source.await(t, 8)
	p := f.proc("download", 0)
	for over := false; !over; { // until the second one has come through: it is caught until the first was heard
		p.send(syscall.SIGTERM)
		select {
		case err := <-p.ended:
			p.ended <- err
			over = true
		case <-time.After(time.Millisecond):
		}
	}
	p.wait()
	f.proc("registry", 0).kill()
	if took := f.proc("download", 1).stop(); took > grace+time.Second {
		t.Errorf("without a Registry it ended after %v, want within its grace of %v", took, grace)
	}
	source.healed.Store(true)
	f.startAll()
	f.watch(batch)
	f.stopAll()
	f.checkInvariants()
}

// TestRoles_SpotNotice: at EC2's spot notice a busy worker drains as on SIGTERM. Other workers
// continue; one without metadata logs nothing about it.
func TestRoles_SpotNotice(t *testing.T) {
	t.Parallel()
	var taken, asked atomic.Int64
	metadata := serve(t, map[string]http.HandlerFunc{
		"/latest/api/token": func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPut || r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds") == "" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60")
			io.WriteString(w, "a token")
		},
		"/latest/meta-data/spot/instance-action": func(w http.ResponseWriter, r *http.Request) {
			switch asked.Add(1); {
			case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "a token":
				w.WriteHeader(http.StatusUnauthorized)
			case taken.Load() == 0:
				w.WriteHeader(http.StatusNotFound)
			default:
				io.WriteString(w, `{"action": "terminate", "time": "2026-09-18T08:22:00Z"}`)
			}
		},
	})
	source := newStalling(t, 12)
	f := newFleet(t, fleetSpec{workers: few, env: []string{fourSlots}})
	leaving, staying := f.proc("download", 0), f.proc("download", 1)
	for p, endpoint := range map[*process]string{leaving: metadata, staying: "http://127.0.0.1:1"} {
		p.stop()
		p.env = append(p.env, "AWS_EC2_METADATA_DISABLED=false", "AWS_EC2_METADATA_SERVICE_ENDPOINT="+endpoint)
		p.start()
	}
	batch := f.begin(source.url + "/batch.checkm")
	source.await(t, 8)
	f.until("the metadata was asked", func() bool { return asked.Load() > 0 })
	taken.Store(1)
	leaving.endsWell()
	if !strings.Contains(leaving.log(), "EC2 takes this machine") {
		t.Errorf("it does not say why it ended:\n%s", leaving.log())
	}
	if strings.Contains(staying.log(), "metadata") {
		t.Errorf("a machine without metadata is spoken of:\n%s", staying.log())
	}
	source.healed.Store(true)
	staying.stop() // its downloads stall
	staying.start()
	f.watch(batch)
	f.stopAll()
	f.checkInvariants()
}

// TestRoles_Start: roles report wrong settings and missing services at their start.
func TestRoles_Start(t *testing.T) {
	t.Parallel()
	f := newFleet(t, fleetSpec{workers: []string{"download"}})
	download := f.proc("download", 0)

	t.Run("a token of another role is refused", func(t *testing.T) {
		secret := f.secret("--name", "ann", "--role", "viewer", "--dir", f.dir)
		r := f.role(download, []string{"HOLDFAST_TOKEN=" + secret}, "worker", "download")
		f.refused(r, 8, `"ann" has the role viewer`, "HOLDFAST_TOKEN: refused by the Registry at ", "holdfast token create --role worker")
		r = f.role(download, []string{"HOLDFAST_TOKEN=hf_unknown"}, "worker", "download")
		f.refused(r, 8, "the token is unknown here", "holdfast token create --role worker")
	})
	t.Run("a worker that is newer than the Registry waits", func(t *testing.T) {
		address, _ := f.address()
		to, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		older := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			if r.Out.URL.RawQuery != "" {
				r.Out.URL.RawQuery = "version=99"
			}
		}})
		defer older.Close()
		r := f.role(download, []string{"HOLDFAST_URL=" + older.URL}, "worker", "download", "--wait", "100ms")
		f.refused(r, 5, "this worker is newer than the Registry", "upgrade the Registry first")
	})
	t.Run("a token of another stage is refused", func(t *testing.T) {
		secret := f.secret("--name", "eva", "--role", "worker", "--stage", "scan,process", "--dir", f.dir)
		r := f.role(download, []string{"HOLDFAST_TOKEN=" + secret}, "worker", "process", "download")
		f.refused(r, 2, "HOLDFAST_TOKEN: its stages: it is valid for scan,process, not for download", "holdfast token create --role worker --stage process,download")
		says(t, "a worker's token without a stage", f.runIn("", "token", "create", "--name", "eva2", "--role", "worker", "--dir", f.dir).stderr, "  --stage: ")
		says(t, "the list", f.must(0, "token", "list").stdout, "scan, process")
	})
	t.Run("a SQLite file is one process's", func(t *testing.T) {
		database := "sqlite:" + filepath.Join(f.dir, "registry.db")
		r := f.role(f.proc("registry", 0), []string{"HOLDFAST_LISTEN=127.0.0.1:0"}, "registry", "--wait", "0s")
		f.refused(r, 5, "HOLDFAST_DATABASE_URL", "another holdfast is running on this")
		f.refused(f.runIn("", "token", "create", "--name", "eve", "--role", "admin", "--database="+database), 5, "another holdfast", "stop the Registry")
		f.refused(f.runIn("", "up", "--dir", f.dir, "--listen", "127.0.0.1:0"), 5, "another holdfast is running")
	})
	t.Run("all faults at once", func(t *testing.T) {
		r := f.role(download, []string{
			"HOLDFAST_REDIS_URL=redis://:hunter2@127.0.0.1:1/0", "HOLDFAST_STAGING_URL=file://" + f.dir + "/nowhere", "HOLDFAST_NSQLOOKUPD_ADDRS=127.0.0.1:1",
			"HOLDFAST_LISTEN=" + f.proc("broker", 0).words["nsqd"], "HOLDFAST_TOKEN=", "HOLDFAST_LEASES=3s",
		}, "worker", "download")
		f.refused(r, 2, "HOLDFAST_LEASES: unknown", "did you mean HOLDFAST_LEASE?", "HOLDFAST_TOKEN: not set", "HOLDFAST_REDIS_URL: Redis at redis://:xxxxx@127.0.0.1:1/0",
			"HOLDFAST_STAGING_URL: staging at file://"+f.dir+"/nowhere", "HOLDFAST_NSQLOOKUPD_ADDRS: nsqd at 127.0.0.1:1", "HOLDFAST_LISTEN: its own address")
		if strings.Contains(r.stderr, "hunter2") {
			t.Errorf("a password is told:\n%s", r.stderr)
		}
	})
	t.Run("a Redis that forgets is spoken of", func(t *testing.T) {
		forgetful := redistest.Start(t)
		r := f.role(download, []string{"HOLDFAST_REDIS_URL=" + forgetful.URL(), "HOLDFAST_TOKEN="}, "worker", "download")
		f.refused(r, 2, "HOLDFAST_TOKEN: not set", "redis has appendonly no")
		if strings.Contains(r.stderr, "holdfast: HOLDFAST_REDIS_URL") {
			t.Errorf("it is refused:\n%s", r.stderr)
		}
	})
	t.Run("what is away is waited for", func(t *testing.T) {
		r := f.role(download, []string{"HOLDFAST_REDIS_URL=redis://127.0.0.1:1/0", "HOLDFAST_URL=http://127.0.0.1:1"}, "worker", "download", "--wait", "100ms")
		f.refused(r, 5, "HOLDFAST_REDIS_URL", "HOLDFAST_URL", "start it")
		if took := f.proc("registry", 0).stop(); took > 5*time.Second {
			t.Errorf("a Registry with a worker ended %v after the signal", took)
		}
		download.stop()
		download.begin()
		f.until("the worker waits for the Registry", func() bool { return strings.Contains(download.log(), "waiting for services") })
		f.proc("registry", 0).start()
		download.await()
	})
	t.Run("it says how it is", func(t *testing.T) {
		url := download.words["url"]
		r := f.role(download, []string{"HOLDFAST_LISTEN=" + strings.TrimPrefix(url, "http://")}, "health")
		if r.code != 0 || !strings.HasPrefix(r.stdout, "ok") {
			t.Errorf("health of a worker ended with %d: %s%s", r.code, r.stdout, r.stderr)
		}
		f.until("it is ready", func() bool { return get(t, url+"/readyz") == http.StatusOK })
		f.cache.Kill()
		if got := get(t, url+"/readyz"); got != http.StatusServiceUnavailable {
			t.Errorf("without Redis it answers %d, want 503", got)
		}
		f.cache.Restart()
	})
	t.Run("a restored Registry says so until it was reconciled", func(t *testing.T) {
		server := f.proc("registry", 0)
		reconcile := func(code int, args ...string) string {
			t.Helper()
			r := f.role(server, nil, append([]string{"reconcile", "--apply"}, args...)...)
			if r.code != code {
				t.Errorf("reconcile ended with %d, want %d: %s%s", r.code, code, r.stdout, r.stderr)
			}
			return r.stdout + r.stderr
		}
		server.stop()
		damaged := filepath.Join(f.place("storage"), "damaged")
		for name, text := range map[string]string{"0=ocfl_object_1.1": "ocfl_object_1.1\n", "inventory.json": "{"} {
			if err := errors.Join(os.MkdirAll(damaged, 0o755), os.WriteFile(filepath.Join(damaged, name), []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		says(t, "reconcile", reconcile(1, "--restored"), "a person must judge")
		if err := os.RemoveAll(damaged); err != nil {
			t.Fatal(err)
		}
		server.start()
		says(t, "the log", server.log(), "restored from a backup")
		says(t, "the queue", f.must(0, "queue", "status").stdout, "RESTORED")
		says(t, "the first page", f.page("/"), "This Registry was restored from a backup", "holdfast reconcile")
		if holds := rows[registry.Hold](f.holdfast, "hold", "list"); len(holds) != len(registry.RestoredStages()) {
			t.Errorf("%d holds, want one for each of %v", len(holds), registry.RestoredStages())
		}
		server.stop()
		says(t, "reconcile", reconcile(0), "the Registry is released")
		server.start()
		if holds := rows[registry.Hold](f.holdfast, "hold", "list"); len(holds) > 0 {
			t.Errorf("a released Registry holds %v", holds)
		}
		if text := f.page("/"); strings.Contains(text, "restored from a backup") {
			t.Error("the first page of a released Registry says that it was restored")
		}
	})
}

// role runs a command once, with the environment of a fleet's process and further settings.
func (f *fleet) role(like *process, env []string, args ...string) result {
	f.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append(like.env[:len(like.env):len(like.env)], env...)
	return f.finish(cmd)
}

// refused checks a command that must have ended with a code, and said these things.
func (f *fleet) refused(r result, code int, says ...string) {
	f.t.Helper()
	if r.code != code {
		f.t.Errorf("it ended with %d, want %d: %s%s", r.code, code, r.stdout, r.stderr)
	}
	for _, s := range says {
		if !strings.Contains(r.stderr, s) {
			f.t.Errorf("it does not say %q:\n%s", s, r.stderr)
		}
	}
}

// get is the status of an answer.
func get(t *testing.T, url string) int {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}
