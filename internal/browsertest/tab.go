package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Mode is how a tab shows pages. The zero value is a light desktop with scripts.
type Mode struct {
	Phone    bool // 390 × 844 points
	Narrow   bool // 320 × 256 points: a desktop's page at 400 % (WCAG 2.2, 1.4.10)
	Dark     bool
	NoScript bool
}

// Modes are the four that each page must be good in.
var Modes = []Mode{{}, {Dark: true}, {Phone: true}, {Phone: true, Dark: true}}

// String names the mode, for subtests and files.
func (m Mode) String() string {
	name := "desktop"
	if m.Phone {
		name = "phone"
	}
	if m.Dark {
		name += "-dark"
	}
	if m.NoScript {
		name += "-noscript"
	}
	return name
}

// Tab is an open tab. Its methods fail the test if something cannot be done.
type Tab struct {
	t    testing.TB
	ctx  context.Context //nolint:containedctx // chromedp keeps the tab in it
	base string

	mu      sync.Mutex
	at      string   // the path that Go opened last
	allowed []string // texts of faults that the test provokes
	faults  []string
}

// observer adds up layout shifts, as browsers rate pages: without those that follow a person's act.
const observer = `window.layoutShift = 0; window.layoutShifts = [];
new PerformanceObserver((list) => { for (const e of list.getEntries()) if (!e.hadRecentInput) {
	window.layoutShift += e.value;
	for (const s of e.sources) window.layoutShifts.push((s.node && (s.node.id || s.node.className || s.node.nodeName)) + " " + JSON.stringify(s.previousRect) + " → " + JSON.stringify(s.currentRect));
} }).observe({ type: "layout-shift", buffered: true });`

// Open opens a tab on a site, such as http://127.0.0.1:8080. It closes when the test ends.
func Open(t testing.TB, base string, m Mode) *Tab {
	t.Helper()
	ctx, end := chromedp.NewContext(started(t), chromedp.WithNewBrowserContext())
	tab := &Tab{t: t, ctx: ctx, base: strings.TrimSuffix(base, "/")}
	t.Cleanup(func() {
		end()
		tab.Check()
	})
	if err := chromedp.Listen(ctx, tab.hear); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	call(tab, log.Enable, cdp.Empty{})
	call(tab, network.Enable, network.EnableParams{})
	call(tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: observer})
	call(tab, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Berlin"})
	tab.Mode(m)
	return tab
}

// For makes the tab tell its failures to another test, such as a subtest. Give it back before that
// ends.
func (tab *Tab) For(t testing.TB) { tab.t = t }

// Mode shows pages otherwise from now on.
func (tab *Tab) Mode(m Mode) {
	tab.t.Helper()
	size := emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 900, DeviceScaleFactor: 1}
	if m.Phone {
		size = emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 1, Mobile: true}
	}
	if m.Narrow {
		size.Width, size.Height = 320, 256
	}
	colours := "light"
	if m.Dark {
		colours = "dark"
	}
	call(tab, emulation.SetDeviceMetricsOverride, size)
	call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}}})
	call(tab, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: m.NoScript})
}

// Allow declares a fault that the test provokes, by a part of its text.
func (tab *Tab) Allow(text string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	tab.allowed = append(tab.allowed, text)
}

// Check fails the test for the faults that the tab has had since the last call.
func (tab *Tab) Check() {
	tab.t.Helper()
	tab.mu.Lock()
	defer tab.mu.Unlock()
	for _, fault := range tab.faults {
		tab.t.Errorf("the browser: %s", fault)
	}
	tab.faults = nil
}

func (tab *Tab) fault(text string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	for _, allowed := range tab.allowed {
		if strings.Contains(text, allowed) {
			return
		}
	}
	tab.faults = append(tab.faults, tab.at+": "+text)
}

// hear notes faults among the tab's events.
func (tab *Tab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			var said []string
			for _, arg := range e.Args {
				said = append(said, arg.Description+string(arg.Value))
			}
			tab.fault("console: " + strings.Join(said, " "))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		tab.fault("script: " + text)
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			tab.fault(string(e.Entry.Source) + ": " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		at, err := url.Parse(e.Request.URL)
		if err != nil || strings.HasPrefix(at.Scheme, "http") && at.Hostname() != "127.0.0.1" {
			tab.fault("a request leaves the host: " + e.Request.URL)
		}
	}
}

// Run performs actions of chromedp.
func (tab *Tab) Run(actions ...chromedp.Action[chromedp.Void]) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		tab.t.Fatalf("the browser: %v\n%s", err, tab.state())
	}
}

// call sends a command of the browser's protocol.
func call[P, R any](tab *Tab, command cdp.Command[P, R], params P) R {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	r, err := chromedp.Call(ctx, command, params)
	if err != nil {
		tab.t.Fatalf("the browser: %s: %v", command.Method, err)
	}
	return r
}

// Go opens a page of the site, by its path.
func (tab *Tab) Go(path string) {
	tab.t.Helper()
	tab.mu.Lock()
	tab.at = path
	tab.mu.Unlock()
	tab.Run(chromedp.Navigate(tab.base + path))
}

// SignIn signs in by a one-time link, whose path is /login?link=..., or by a token.
func (tab *Tab) SignIn(secret string) {
	tab.t.Helper()
	if strings.HasPrefix(secret, "/") {
		tab.Go(secret)
	} else {
		tab.Go("/login")
		tab.Type("#token", secret)
	}
	tab.Follow("form button")
	if at := tab.Path(); strings.HasPrefix(at, "/login") {
		tab.t.Fatalf("signing in leads to %s\n%s", at, tab.state())
	}
}

// Path is the address of the page, without the host.
func (tab *Tab) Path() string {
	tab.t.Helper()
	return Eval[string](tab, "location.pathname + location.search + location.hash")
}

// Eval evaluates an expression in the page; a promise is awaited.
func Eval[T any](tab *Tab, expression string) T {
	tab.t.Helper()
	v, err := eval[T](tab, expression)
	if err != nil {
		tab.t.Fatalf("the browser: %s: %v\n%s", expression, err, tab.state())
	}
	return v
}

func eval[T any](tab *Tab, expression string) (v T, err error) {
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Await waits until a condition is true, across pages.
func (tab *Tab) Await(condition string) {
	tab.t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	last := errNever
	for {
		ok, err := eval[bool](tab, "!!("+condition+")") // which fails while a page goes
		if ok {
			return
		}
		if err != nil {
			last = err
		}
		select {
		case <-again.C:
		case <-late.C:
			tab.t.Fatalf("the browser: %s: %v\n%s", condition, last, tab.state())
		}
	}
}

// AwaitText waits until the page's main part has a text.
func (tab *Tab) AwaitText(text string) {
	tab.t.Helper()
	tab.Await(`(document.querySelector("main") || document.body).innerText.includes(` + Quoted(text) + `)`)
}

// Text is the visible text of the first element of a selector; "" if there is none.
func (tab *Tab) Text(selector string) string {
	tab.t.Helper()
	return Eval[string](tab, "document.querySelector("+Quoted(selector)+")?.innerText ?? ''")
}

// Count is how many elements a selector has.
func (tab *Tab) Count(selector string) int {
	tab.t.Helper()
	return Eval[int](tab, "document.querySelectorAll("+Quoted(selector)+").length")
}

// Click clicks on the first element of a selector, once it can be seen.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	tab.Run(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// Follow clicks, and waits for the next page.
func (tab *Tab) Follow(selector string) {
	tab.t.Helper()
	tab.Leaves(func() { tab.Click(selector) })
}

// Leaves does something that leads to another page, and waits for that.
func (tab *Tab) Leaves(act func()) {
	tab.t.Helper()
	Eval[bool](tab, "window.isBefore = true")
	act()
	// Between two pages there may be an empty document, which is complete.
	tab.Await("!window.isBefore && document.readyState === 'complete' && location.protocol !== 'about:'")
}

// Type types a text into a field, in place of what it has.
func (tab *Tab) Type(selector, text string) {
	tab.t.Helper()
	tab.Click(selector)
	Eval[bool](tab, "(document.querySelector("+Quoted(selector)+").select?.(), true)")
	tab.Run(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Press presses keys, of package kb or as a text, where the focus is.
func (tab *Tab) Press(keys string, options ...chromedp.KeyOption) {
	tab.t.Helper()
	tab.Run(chromedp.KeyEvent(keys, options...))
}

// Drop drops files and folders of this machine onto the first element of a selector.
func (tab *Tab) Drop(selector string, paths ...string) {
	tab.t.Helper()
	at := Eval[[2]float64](tab, `(() => { const e = document.querySelector(`+Quoted(selector)+`); e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`)
	data := &input.DragData{Items: []*input.DragDataItem{}, Files: paths, DragOperationsMask: 1} // copy
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
		call(tab, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: at[0], Y: at[1], Data: data})
	}
}

// Offline takes the network away from the tab, or gives it back.
func (tab *Tab) Offline(off bool) {
	tab.t.Helper()
	call(tab, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: off, DownloadThroughput: -1, UploadThroughput: -1})
	conditions := []*network.Conditions{} // of all addresses
	if off {
		conditions = append(conditions, &network.Conditions{Offline: true, DownloadThroughput: -1, UploadThroughput: -1})
	}
	call(tab, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: conditions})
}

// Hide tells the page that its tab is hidden, or shown again: a browser without a window shows all.
func (tab *Tab) Hide(hidden bool) {
	tab.t.Helper()
	Eval[bool](tab, fmt.Sprintf(`(() => { Object.defineProperty(document, "hidden", { configurable: true, get: () => %t });
		return document.dispatchEvent(new Event("visibilitychange")); })()`, hidden))
}

// Shift is how much the page's content has jumped since it was opened or since the last call, as
// browsers measure it (layout instability), and what jumped.
func (tab *Tab) Shift() (score float64, what []string) {
	tab.t.Helper()
	// Two frames, so that what is laid out is counted.
	Eval[bool](tab, "new Promise((ok) => requestAnimationFrame(() => requestAnimationFrame(() => ok(true))))")
	score, what = Eval[float64](tab, "window.layoutShift"), Eval[[]string](tab, "window.layoutShifts")
	Eval[int](tab, "(window.layoutShifts = [], window.layoutShift = 0)")
	return score, what
}

// Fits fails the test if the page is wider than the screen, and names what sticks out.
func (tab *Tab) Fits() {
	tab.t.Helper()
	// What sticks out is what makes the page less wide when it is hidden; the innermost is the cause.
	const script = `(() => { const root = document.documentElement, wide = root.scrollWidth; if (wide <= root.clientWidth) return [];
		const guilty = (e) => { const was = e.style.display; e.style.display = "none"; const now = root.scrollWidth; e.style.display = was; return now < wide; };
		return [...document.querySelectorAll("body *")].filter((e) => e.style && e.getBoundingClientRect().right > root.clientWidth && guilty(e))
			.slice(-3).map((e) => e.nodeName.toLowerCase() + "." + e.className + " " + e.textContent.trim().slice(0, 40)).concat([wide + " > " + root.clientWidth]); })()`
	if wide := Eval[[]string](tab, script); len(wide) > 0 {
		tab.t.Errorf("%s is wider than the screen: %s", tab.Path(), strings.Join(wide, "; "))
	}
}

// Screenshot writes a picture (PNG) of what can be seen or of the whole page.
func (tab *Tab) Screenshot(file string, whole bool) {
	tab.t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	take := chromedp.CaptureScreenshot()
	if whole {
		const best = 100 // which is PNG
		take = chromedp.FullScreenshot(best)
	}
	png, err := chromedp.Run(ctx, take)
	if err == nil {
		err = os.WriteFile(file, png, 0o644)
	}
	if err != nil {
		tab.t.Fatalf("screenshot: %v", err)
	}
}

// state describes the page, for failures.
func (tab *Tab) state() string {
	at, _ := eval[string](tab, "location.href") // "" if it cannot be read
	text, _ := eval[string](tab, "document.body.innerText.slice(0, 1500)")
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return at + "\n" + text + "\n" + strings.Join(tab.faults, "\n")
}

// Quoted is a text as JavaScript.
func Quoted(text string) string {
	raw, _ := json.Marshal(text) // a text can be written
	return string(raw)
}
