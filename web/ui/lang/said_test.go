package lang_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// saying is where code of a package writes words that pages show by Texts.Said: texts, and formats of texts.
type saying struct {
	files     []string         // of the package; nil: all
	fields    []string         // of values
	functions map[string][]int // by name: which arguments are texts without verbs
	calls     []string         // functions whose arguments are texts and formats
	returns   []string         // functions that return texts and formats
	vars      []string         // whose values have texts and formats
	wrapping  bool             // of the formats that wrap an error only those that say more of one of the contract: "%w: ..."
	element   int              // of each value in a list of values without names of fields; 0: none
	texts     []string         // what the code puts together
}

// errorsOf are the calls that make errors and texts.
var errorsOf = []string{
	"New", "Errorf", "Sprintf", "Fprintf", "WriteString", "Either", "Invalid", "Refused", "NotFound", "Unprocessable", "NewProblem", "fault", "badRequest", "forbidden", "refuse",
	"formatFault", "Snooze", "wrong", "notARK", "errNotOlder", "invalidGraph", "Told", "unsent", "fail", "add",
}

// sayings are the packages that write such words.
var sayings = map[string]saying{
	"base":     {files: []string{"base.go", "verdict.go", "step.go"}, calls: errorsOf},
	"callback": {calls: errorsOf, returns: []string{"Remedy"}},
	"checkm": {fields: []string{"Expected", "Fix"}, functions: map[string][]int{
		"warn": {2, 4}, "refuse": {2, 4}, "condemn": {2, 4}, "fault": {1, 2}, "report": {2},
	}, calls: []string{"Sprintf"}},
	"clamd":      {calls: errorsOf, returns: []string{"Remedy"}},
	"credential": {calls: errorsOf},
	"ezid":       {files: []string{"error.go", "name.go", "exchange.go"}, calls: errorsOf, returns: []string{"Remedy"}},
	"faults":     {files: []string{"faults.go"}, texts: []string{"and %d more files"}},
	"intake": {
		fields: []string{"Message", "Expected", "Fix"}, calls: []string{"Sprintf"},
		texts: []string{"fix", "line %d, column %d", "%d errors; correct them", "1 error; correct it"},
	},
	"netfault": {element: 1, calls: errorsOf, returns: []string{"textOf", "textOfTLS"}},
	"noid":     {files: []string{"ark.go", "template.go"}, calls: errorsOf, texts: []string{"ARK %q", "NOID template %q", "a period or a brace must come before it"}},
	"profile":  {files: []string{"check.go", "document.go", "json.go", "yaml.go", "changes.go"}, calls: errorsOf},
	"rebuild":  {files: []string{"adoptevents.go"}, calls: []string{"Sprintf"}},
	"registry": {
		calls: errorsOf, fields: []string{"Why"}, returns: []string{"instead", "WhyNot", "Reason", "mailTold"}, vars: []string{"impossible", "uploadOwners"},
		texts: []string{"no act is possible any more", "function", "namespace", "1 try", "rights", "no rights, preservation level or embargo", "%s from %s"},
	},
	"registry/bulk":      {calls: errorsOf, files: []string{"preview.go", "bulk.go"}},
	"registry/catalog":   {files: []string{"abandon.go", "checkpoint.go", "deletion.go", "filechanges.go", "objects.go"}, calls: errorsOf, wrapping: true, texts: []string{"identify item %s"}},
	"registry/deposit":   {files: []string{"correction.go"}, calls: errorsOf, wrapping: true},
	"registry/outbound":  {files: []string{"delivery.go", "mail.go", "subscription.go"}, calls: errorsOf, wrapping: true},
	"registry/query":     {element: 2, calls: errorsOf},
	"registry/schedules": {calls: errorsOf, wrapping: true},
	"registry/storages":  {files: []string{"storages.go"}, calls: errorsOf, wrapping: true, texts: []string{"storage %s", "collection %s"}},
	"registry/wording":   {vars: []string{"producersOwn"}},
	"registry/work": {
		files: []string{"hold.go", "priority.go", "slotshare.go"}, calls: errorsOf, wrapping: true,
		texts: []string{
			"%d of %d jobs did not complete", "the object of 1 of them is preserved", "the objects of %d of them are preserved",
			"cancelled by %s", "cancelled by %s: %s", "aborted by %s", "aborted by %s: %s", "deleted by %s", "deleted by %s: %s",
		},
	},
	"source": {
		files: []string{"error.go", "exchange.go", "httpbody.go", "mux.go", "s3address.go", "upload.go", "classify.go", "guard.go"}, calls: errorsOf, returns: []string{"describe", "Remedy"}, texts: []string{
			"could not ask about %s", "could not fetch %s", "open %s", "read %s", "asks to wait %s", "connection refused", "connection reset by peer", "no such host", "i/o timeout", "unexpected EOF",
			"no such file or directory", "permission denied", "no space left on device",
		},
	},
	"source/s3source":    {calls: errorsOf},
	"source/unpack":      {calls: errorsOf, texts: []string{"unpack"}},
	"staging":            {files: []string{"blocks.go", "fetch.go", "wanted.go", "readback.go", "transfer.go"}, calls: errorsOf},
	"web/api":            {files: []string{"authenticate.go", "guard.go", "share.go", "pages.go"}, calls: errorsOf},
	"web/api/access":     {calls: errorsOf},
	"web/api/account":    {calls: errorsOf},
	"web/api/endpoint":   {fields: []string{"Message", "Fix"}, element: 3, calls: errorsOf},
	"web/api/object":     {calls: errorsOf, fields: []string{"Message", "Fix"}, texts: []string{"read receipt key %s"}}, // of receipt.RecordedKeys
	"web/api/submission": {fields: []string{"Message", "Fix"}, calls: errorsOf},
	"web/api/upload":     {files: []string{"continue.go", "finish.go", "limits.go", "receivers.go", "remove.go", "transfer.go", "tus.go", "upload.go"}, calls: errorsOf},
	"web/api/collection": {calls: errorsOf, fields: []string{"Message", "Fix"}},
	"web/api/event":      {calls: errorsOf, fields: []string{"Message", "Fix"}},
	"web/api/item":       {calls: errorsOf, fields: []string{"Message", "Fix"}, texts: []string{"the bulk act was not started"}},
	"web/api/lookup":     {calls: errorsOf, fields: []string{"Message", "Fix"}},
	"web/api/outbound":   {calls: errorsOf, fields: []string{"Message", "Fix"}},
	"web/api/process":    {calls: errorsOf, fields: []string{"Message", "Fix"}},
	"web/api/queue":      {calls: errorsOf, fields: []string{"Message", "Fix"}},
	"web/api/shortid":    {calls: errorsOf, fields: []string{"Message", "Fix"}},
	"web/api/valid": {fields: []string{"Message", "Fix"}, texts: []string{
		"correct the fields that the errors name", "expected length <= %d", "expected length >= %d", "expected number <= %d", "expected number >= %d",
		"expected exactly %d fields, found %d", "contains a control character, such as the end of a line", "%q is not a known encoding",
		"there are cp437, iso-8859-1, windows-1252, shift_jis and others of IANA's list",
	}},
	"web/wire":            {files: []string{"evidence.go"}, fields: []string{"Message"}},
	"web/ui/admin":        {calls: errorsOf},
	"web/ui/deposit":      {calls: errorsOf},
	"web/ui/function":     {calls: errorsOf, fields: []string{"Message"}},
	"web/ui/item":         {calls: errorsOf},
	"web/ui/object":       {calls: errorsOf},
	"web/ui/page":         {calls: errorsOf, files: []string{"act.go", "page.go", "preferences.go", "problem.go", "site.go", "fault.go", "live.go"}},
	"web/ui/queue":        {calls: []string{"Invalid", "Refused"}},
	"web/ui/search":       {calls: errorsOf},
	"workers":             {calls: errorsOf},
	"workers/content":     {calls: errorsOf},
	"workers/delivery":    {calls: errorsOf},
	"workers/fixitycheck": {calls: errorsOf, texts: []string{"its sidecar, or the object's root inventory, sidecar or declaration", "files of no version beside it", "files of no version in the object's logs or extensions"}},
	"workers/identity":    {calls: errorsOf},
	"workers/payload":     {calls: errorsOf},
	"workers/restore":     {calls: errorsOf},
	"workers/result":      {calls: errorsOf},
	"workers/scanning":    {calls: errorsOf},
	"workers/tidy":        {calls: errorsOf},
	"workers/version":     {calls: errorsOf},
}

// said adds what a package says.
func (k *keys) said(folder string, from saying) {
	paths, err := filepath.Glob(filepath.Join("../../..", folder, "*.go"))
	if err != nil {
		k.t.Fatal(err)
	}
	s := sayer{keys: k, from: from, constants: map[string]ast.Expr{}}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || from.files != nil && !slices.Contains(from.files, filepath.Base(path)) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			k.t.Fatal(err)
		}
		files = append(files, file)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
				for i, name := range spec.Names {
					s.constants[name.Name] = spec.Values[i]
				}
			}
			return true
		})
	}
	for _, file := range files {
		ast.Inspect(file, s.node)
	}
	for _, text := range from.texts {
		if len(verbs(text)) > 0 {
			s.phrases[text] = true
		}
		s.add(text)
		s.found++
	}
	if s.found == 0 {
		k.t.Errorf("package %s says nothing that pages show", folder)
	}
}

// sayer gathers what a package says.
type sayer struct {
	*keys

	from      saying
	constants map[string]ast.Expr
	found     int
}

func (s *sayer) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.KeyValueExpr:
		if name, ok := n.Key.(*ast.Ident); ok && slices.Contains(s.from.fields, name.Name) {
			s.text(n.Value)
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if field, ok := to.(*ast.SelectorExpr); ok && n.Tok == token.ASSIGN && len(n.Lhs) == len(n.Rhs) && slices.Contains(s.from.fields, field.Sel.Name) {
				s.text(n.Rhs[i])
			}
		}
	case *ast.CompositeLit:
		for _, e := range n.Elts {
			if one, ok := e.(*ast.CompositeLit); ok && s.from.element > 0 && len(one.Elts) > s.from.element {
				s.text(one.Elts[s.from.element])
			}
		}
	case *ast.CallExpr:
		name := exprName(n.Fun)
		name = name[strings.LastIndex(name, ".")+1:]
		for _, at := range s.from.functions[name] {
			if at < len(n.Args) {
				s.text(n.Args[at])
			}
		}
		if slices.Contains(s.from.calls, name) {
			for _, arg := range n.Args {
				s.words(arg)
			}
		}
	case *ast.ValueSpec:
		if slices.Contains(s.from.vars, n.Names[0].Name) {
			ast.Inspect(n, func(n ast.Node) bool {
				if one, ok := n.(*ast.BasicLit); ok {
					s.words(one)
				}
				return true
			})
		}
	case *ast.FuncDecl:
		if slices.Contains(s.from.returns, n.Name.Name) {
			ast.Inspect(n, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok {
					for _, one := range r.Results {
						s.words(one)
					}
				}
				return true
			})
		}
	}
	return true
}

// text adds a text that is written in one piece.
func (s *sayer) text(e ast.Expr) {
	if name, ok := e.(*ast.Ident); ok && s.constants[name.Name] != nil {
		e = s.constants[name.Name]
	}
	if text, ok := literal(e); ok {
		s.key(strings.ReplaceAll(text, "%", "%%"))
	}
}

// wraps are the errors that a format wraps, before and after what it says itself.
var wraps = regexp.MustCompile(`^(?:%[wv]: )+|(?:(?:: |; )%[wv])+$`)

// ends is what stands between statements, and at the ends of their formats.
var ends = regexp.MustCompile(`^[;:,]? +|[;,]? *\n?$|^[;,]|: $`)

// internal are formats of errors that only a fault of Holdfast brings about.
var internal = regexp.MustCompile(`^(encode|decode|send changes|render page|plan inventory|stage inventory|write system|page: an option|seek to|searched enough|runner was|read form|the state (takes|is not)|result %|a worker cannot|a step cannot end|a timer is|event %d of the history|the step made|request id|only judged|ORDER BY|SELECT|EXISTS|b\.status|page %s answers|the stream is over|the item's results|what attempt)|is not JSON|claim needs|another claim|data: %s|does not name a process`)

// words adds a text or a format, without the errors that it wraps: those are told by themselves.
func (s *sayer) words(e ast.Expr) {
	if name, ok := e.(*ast.Ident); ok && s.constants[name.Name] != nil {
		e = s.constants[name.Name]
	}
	text, ok := literal(e)
	if !ok || s.from.wrapping && strings.Contains(text, "%w") && !strings.HasPrefix(text, "%w: ") {
		return
	}
	text = wraps.ReplaceAllString(text, "")
	text = ends.ReplaceAllString(strings.ReplaceAll(text, "%w", "%v"), "")
	if internal.MatchString(text) || !spoken.MatchString(verb.ReplaceAllString(text, "")) {
		return
	}
	const fewest = 4 // letters of its own by which a text is recognised
	switch own := letter.FindAllString(verb.ReplaceAllString(text, ""), -1); {
	case len(verbs(text)) == 0:
		s.key(text)
	case len(own) >= fewest && !strings.Contains(text, "|"):
		s.phrases[text] = true
		s.key(text)
	}
}

// letter matches a letter.
var letter = regexp.MustCompile(`\pL`)

// spoken matches a text that has words of its own.
var spoken = regexp.MustCompile(`[a-z]{2,} |[a-z ]{2,}[a-z]{2}$`)

// key adds a key, unless it is that of a single word, which may be a value, or would have two forms.
func (s *sayer) key(key string) {
	if strings.Contains(key, " ") && !strings.Contains(key, "|") {
		s.add(key)
		s.found++
	}
}
