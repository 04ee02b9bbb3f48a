// Package browsertest opens pages in a real browser, Debian's chromium.
//
// A test package's TestMain is [Main], or calls [Stop] at its end. Each test opens tabs with [Open].
// A tab has cookies of its own. It fails its test for each error on the console or in a script, for
// each file that could not be loaded, and for each request that would leave 127.0.0.1.
package browsertest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast/holdfast/internal/proctest"
)

// program is the browser.
const program = "chromium"

// browser is the one browser of a test binary.
var browser struct {
	mu   sync.Mutex
	ctx  context.Context //nolint:containedctx // chromedp keeps the browser in it
	stop func()
}

// Main runs a package's tests, and ends the browser that they used.
func Main(m *testing.M) {
	code := m.Run()
	Stop()
	os.Exit(code)
}

// Stop ends the browser, if one runs, and removes its files.
func Stop() {
	browser.mu.Lock()
	defer browser.mu.Unlock()
	if browser.stop != nil {
		browser.stop()
		browser.ctx, browser.stop = nil, nil
	}
}

// started returns the browser's context, and starts the browser at the first call. If there is no
// browser, the test is skipped, or fails if REQUIRE_SERVICES is 1.
func started(t testing.TB) context.Context {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		proctest.Absent(t, program, err)
	}
	browser.mu.Lock()
	defer browser.mu.Unlock()
	if browser.ctx != nil {
		return browser.ctx
	}
	profile, err := os.MkdirTemp("", "holdfast-browser-") //nolint:usetesting // it outlives the test
	if err != nil {
		t.Fatal(err)
	}
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("disable-background-timer-throttling", true), chromedp.Flag("disable-renderer-backgrounding", true),
		// Nothing leaves this machine, whatever a page asks for.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"),
		chromedp.WSURLReadTimeout(patience),
	)
	ctx, end := chromedp.NewContext(allocator)
	stop := func() {
		closing, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_ = chromedp.Cancel(closing) // it is killed below if it does not close
		end()
		endAllocator()
		_ = os.RemoveAll(profile) // in the system's folder of temporary files
	}
	if err := chromedp.Do(ctx); err != nil {
		stop()
		t.Fatalf("start %s: %v", program, err)
	}
	browser.ctx, browser.stop = ctx, stop
	return ctx
}

// patience is how long an act may take on a busy machine.
const patience = 90 * time.Second

var errNever = errors.New("it never became so")
