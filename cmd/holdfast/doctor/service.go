package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// fixService says what to do about a service that does not answer.
const fixService = "start it, or correct HOLDFAST_URL (or --dir); see its log"

// checkService asks the service of this installation for its health.
func checkService(ctx context.Context, s *site, r *report) {
	r.about = s.address
	if s.address == "" {
		if s.serviceErr != nil {
			r.failed(exit.Cause(s.serviceErr), "", fixService)
		}
		return
	}
	h, err := node.AskHealth(ctx, s.address, s.trust)
	if err != nil {
		r.failed(err, "", fixService)
		return
	}
	parts := slices.Sorted(maps.Keys(h.Checks))
	for _, part := range parts {
		if h.Checks[part] != "ok" {
			r.warn(part+": "+h.Checks[part], "mend this part; the service says it at /healthz and logs it")
		}
	}
	switch {
	case h.Status == "failing":
		r.fault("it answers, and its health is failing", "see its log, and the other lines here")
	case h.Version != s.version:
		r.warn(fmt.Sprintf("it is version %s, and this program is version %s", h.Version, s.version), "finish the upgrade: run the same version everywhere (docs/operating.md)")
	case len(r.list) == 0:
		r.ok("version %s, health %s", h.Version, h.Status)
	}
}

// mostRedirects is how many redirects of the outside address are followed.
const mostRedirects = 5

// checkPages asks for the pages at the address that people use, which may lead through proxies, and
// whether this installation answers there.
func checkPages(ctx context.Context, s *site, r *report) {
	address := s.config.MailURL
	if address == "" {
		return
	}
	r.about = address
	const fix = "correct HOLDFAST_MAIL_URL, DNS, or the proxy in front of the service"
	trust := &tls.Config{RootCAs: s.roots(), MinVersion: tls.VersionTLS12}
	h, err := node.AskHealth(ctx, address, trust)
	for n := 0; n < mostRedirects; n++ {
		redirected := new(node.Redirected)
		if !errors.As(err, &redirected) {
			break
		}
		to, same := strings.CutSuffix(redirected.To, node.HealthPath)
		if !same {
			r.fault("links in mails lead there, and for "+node.HealthPath+" it leads on to another page: "+redirected.To, fix)
			return
		}
		address = to
		h, err = node.AskHealth(ctx, address, trust)
	}
	if err != nil {
		r.add(Fault, "links in mails lead there, and it does not answer: "+err.Error(), fix, exit.Temporary)
		return
	}
	if own := s.identity(ctx); own != "" && h.Registry != "" && h.Registry != own {
		r.fault("links in mails lead to another installation: there answers "+h.Registry+", and this one is "+own, fix)
		return
	}
	if address != r.about {
		r.warn("it leads on to "+address, "set HOLDFAST_MAIL_URL to that: each link in a mail then needs one request less, and works without the redirect")
	}
	if webserver.PlainTo(address) {
		r.warn("it is plain HTTP, so others can read tokens and cookies in transit", "serve it by HTTPS (docs/security.md#tls)")
		return
	}
	if len(r.list) == 0 {
		r.ok("the service answers at the address of the pages")
	}
}

// identity returns the permanent identifier of this installation's Registry, or "".
func (s *site) identity(ctx context.Context) string {
	if s.address == "" {
		return ""
	}
	h, err := node.AskHealth(ctx, s.address, s.trust)
	if err != nil {
		return "" // checkService reports it
	}
	return h.Registry
}

const (
	// clockWarning and clockFault bound the difference of clocks. S3 refuses requests that are a
	// quarter of an hour off, and sign-ins at OpenID providers a few minutes.
	clockWarning = 5 * time.Second
	clockFault   = 2 * time.Minute
	// workerClock bounds the difference of a worker's clock to the Registry's, which notes it when the
	// worker announces itself.
	workerClock = 30 * time.Second
)

// compareClock reports the difference of another clock to this machine's, read between two times
// here.
func compareClock(r *report, before, theirs, after time.Time, precision time.Duration) {
	// Within the time of the request and the precision, the clocks may agree.
	off := time.Duration(0)
	switch {
	case theirs.Add(precision).Before(before):
		off = before.Sub(theirs.Add(precision))
	case theirs.After(after):
		off = theirs.Sub(after)
	}
	const fix = "set both clocks by NTP"
	switch off = off.Round(time.Millisecond); {
	case off > clockFault:
		r.fault("its clock and this machine's differ by "+off.String(), fix)
	case off > clockWarning:
		r.warn("its clock and this machine's differ by "+off.String(), fix)
	default:
		r.ok("it agrees with this machine's within %s", max(off, precision, after.Sub(before).Round(time.Millisecond)))
	}
}

// checkClock compares this machine's clock with those of the Registry and of the services of buckets.
// checkDatabase compares the database's, checkWorkers those of other machines.
func checkClock(ctx context.Context, s *site, r *report) {
	var all []Finding
	for _, compare := range append(s.bucketClocks(), s.registryClock) {
		var own report
		compare(ctx, &own)
		all = append(all, own.list...)
	}
	r.list = all
}

// bucketClocks return the comparisons with the service of each bucket.
func (s *site) bucketClocks() (all []func(context.Context, *report)) {
	staging, _ := s.staging()
	addresses := []string{staging}
	for _, st := range s.storages() {
		addresses = append(addresses, st.Address)
	}
	for _, address := range addresses {
		if !strings.HasPrefix(address, "s3:") {
			continue
		}
		all = append(all, func(ctx context.Context, r *report) {
			r.about = "of S3 at " + node.StorageName(address)
			store, err := node.OpenStore(ctx, address)
			if err != nil {
				return // checkStorages reports it
			}
			defer store.Close() //nolint:errcheck // it was only asked
			bucket, ok := store.(interface {
				Clock(ctx context.Context) (time.Time, error)
			})
			if !ok {
				return
			}
			before := s.now()
			theirs, err := bucket.Clock(ctx)
			if err != nil {
				r.skip("it does not tell its time")
				return
			}
			compareClock(r, before, theirs, s.now(), time.Second)
		})
	}
	return all
}

func (s *site) registryClock(ctx context.Context, r *report) {
	if s.address == "" {
		return
	}
	r.about = "of the Registry"
	before := s.now()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(s.address, "/")+node.HealthPath, nil)
	if err != nil {
		r.skip("%s", err)
		return
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: s.trust}
	answer, err := transport.RoundTrip(req)
	if err != nil {
		r.skip("the service does not answer")
		return
	}
	_ = answer.Body.Close()
	after := s.now()
	theirs, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		r.skip("it does not tell its time")
		return
	}
	compareClock(r, before, theirs, after, time.Second)
}

// expiresSoon is how long before its end a token or certificate is warned of.
const expiresSoon = 14 * 24 * time.Hour

// checkToken checks that the service accepts the token, and for how long.
func checkToken(ctx context.Context, s *site, r *report) {
	if s.api == nil {
		if s.role == roleUp {
			r.skip("there is no running service")
		}
		return
	}
	t, err := s.api.OwnToken(ctx)
	var refused *wire.Problem
	switch {
	case errors.As(err, &refused) && (refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden):
		r.fault("the service refuses it: "+err.Error(), "make another one by holdfast token create, and set HOLDFAST_TOKEN to it")
		return
	case err != nil:
		r.skipFor(err)
		return
	}
	if t.ExpiresAt != nil && t.ExpiresAt.Before(s.now().Add(expiresSoon)) {
		r.warn(fmt.Sprintf("%s, %s, expires at %s", t.Name, t.Role, terminal.TimeText(*t.ExpiresAt)), "make another one by holdfast token create, and replace it in time")
		return
	}
	if stage := registry.Stage(s.role); slices.Contains(registry.Stages(), stage) && !t.Serves([]registry.Stage{stage}) {
		r.fault(fmt.Sprintf("%s is not for the stage %s", t.Name, stage), "make one by holdfast token create --role worker --stage "+s.role)
		return
	}
	r.ok("%s, %s", t.Name, t.Role)
}

// checkWorkers compares the versions of all live workers, and looks for stages without workers.
func checkWorkers(ctx context.Context, s *site, r *report) {
	if s.api == nil {
		if s.role == roleRegistry {
			r.skip("set HOLDFAST_URL, and HOLDFAST_TOKEN to the token of an operator, to have them checked")
		}
		return
	}
	workers, err := s.api.Workers(ctx)
	if err != nil {
		r.skipFor(err)
		return
	}
	queue, err := s.api.QueueStatus(ctx)
	if err != nil {
		r.skipFor(err)
		return
	}
	h, err := node.AskHealth(ctx, s.address, s.trust)
	if err != nil {
		r.skip("the service does not tell its version")
		return
	}
	judgeWorkers(r, h.Version, workers, queue)
}

// shortened lists names, of many the first ones and how many more there are.
func shortened(names []string) string {
	if len(names) > 4 {
		names = append(slices.Clone(names[:4]), fmt.Sprintf("%d more", len(names)-4))
	}
	return strings.Join(names, ", ")
}

func judgeWorkers(r *report, registryVersion string, workers []registry.WorkerInfo, queue registry.QueueStatus) {
	versions := map[string][]string{registryVersion: {"Registry"}}
	served := map[registry.Stage]bool{}
	for _, w := range workers {
		stages := slices.Sorted(maps.Keys(w.Capacity))
		for _, stage := range stages {
			served[stage] = true
		}
		name := "worker " + w.ID
		if len(stages) == 1 {
			name += " (" + string(stages[0]) + ")"
		}
		versions[w.Version] = append(versions[w.Version], name)
	}
	if len(versions) > 1 {
		var lines []string
		for _, v := range slices.Sorted(maps.Keys(versions)) {
			lines = append(lines, v+": "+shortened(versions[v]))
		}
		r.warn("several versions run: "+strings.Join(lines, "; "), "finish the upgrade; a fleet may be mixed for a while, but only of two versions in succession")
	}
	var late []string
	for _, w := range workers {
		// A renewal may be under way for some time, so a worker that is behind a little may be right.
		if off := w.Clock.Sub(w.SeenAt); !w.Clock.IsZero() && off.Abs() > workerClock {
			late = append(late, fmt.Sprintf("worker %s by %s", w.ID, off.Abs().Round(time.Second)))
		}
	}
	if len(late) > 0 {
		r.warn("their clocks differ from the Registry's: "+shortened(late), "set the clocks of their machines by NTP; S3 and sign-ins refuse what is minutes off")
	}
	for _, q := range queue.Stages {
		if q.Ready == 0 || served[q.Stage] || q.Capacity > 0 {
			continue
		}
		fix := "start one: holdfast worker " + string(q.Stage)
		if name := q.Stage.Function(); name != "" {
			fix = "start the program that serves the function " + name
		}
		r.fault(fmt.Sprintf("%s at %s, and no worker serves this stage", terminal.Plural(q.Ready, "item is ready", "items are ready"), q.Stage), fix)
	}
	if len(r.list) == 0 {
		r.ok("%s, all of version %s like the Registry", terminal.Plural(int64(len(workers)), "worker lives", "workers live"), registryVersion)
	}
}
