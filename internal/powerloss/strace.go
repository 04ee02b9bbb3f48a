package powerloss

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Read reads the trace of a program that ran under [Command]: what it did to the files below root,
// which was missing or empty when it started. It returns an error for an operation on one of these
// files that the model does not know.
func Read(trace, root string) (*History, error) {
	return read(trace, root, func() (*disk, error) { return newDisk(), nil })
}

// Continue is Read for a program that was started after the one of h was killed at a point. Its root
// held what [History.Seen] returns for the point, and the power was never lost in between: what was
// not durable then becomes so only by a later sync.
func (h *History) Continue(point int, trace, root string) (*History, error) {
	return read(trace, root, func() (*disk, error) {
		d, err := h.at(point)
		if err != nil {
			return nil, err
		}
		return d.restarted(), nil
	})
}

func read(trace, root string, begin func() (*disk, error)) (*History, error) {
	f, err := os.Open(trace)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	r := reader{History: &History{root: root, begin: begin}, begun: map[string]string{}}
	lines := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return r.History, nil // a line that was cut off tells of nothing
		}
		if err == nil {
			err = r.line(strings.TrimSuffix(line, "\n"))
		}
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", trace, n, err)
		}
	}
}

// reader reads the lines of a trace.
type reader struct {
	*History
	begun map[string]string // by thread: the call that has not returned yet
}

// line reads one line: a whole call, the beginning of one, or the end of one.
func (r *reader) line(line string) error {
	thread, text, _ := strings.Cut(line, " ")
	text = strings.TrimLeft(text, " ")
	switch {
	case strings.HasPrefix(text, "+++"), strings.HasPrefix(text, "---"), text == "":
		return nil
	case strings.HasSuffix(text, "<unfinished ...>"):
		r.begun[thread] = strings.TrimSuffix(text, "<unfinished ...>")
		return r.begins(thread, r.begun[thread])
	case strings.HasPrefix(text, "<... "):
		_, rest, ok := strings.Cut(text, " resumed>")
		if !ok {
			return fmt.Errorf("not understood: %.200q", text)
		}
		text = r.begun[thread] + rest
		delete(r.begun, thread)
		return r.ends(thread, text)
	}
	if err := r.begins(thread, text); err != nil {
		return err
	}
	return r.ends(thread, text)
}

// call is a system call and what it returned.
type call struct {
	name   string
	args   []string
	result int64
	failed bool
}

// parse reads `name(arg, arg) = result`; the result is missing of a call that has not returned.
func parse(text string) (c call, err error) {
	name, rest, ok := strings.Cut(text, "(")
	if !ok {
		return c, fmt.Errorf("not understood: %.200q", text)
	}
	c.name = name
	depth, quoted, start := 0, false, 0
	end := len(rest)
loop:
	for i := 0; i < len(rest); i++ {
		switch b := rest[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '(' || b == '[' || b == '{' || b == '<' && depth == 0 && i > 0 && rest[i-1] != ' ':
			depth++
		case b == ')' && depth == 0:
			end = i
			break loop
		case b == ')' || b == ']' || b == '}' || b == '>' && depth > 0:
			depth--
		case b == ',' && depth == 0:
			c.args = append(c.args, strings.TrimSpace(rest[start:i]))
			start = i + 1
		}
	}
	if last := strings.TrimSpace(rest[start:end]); last != "" {
		c.args = append(c.args, last)
	}
	_, result, ok := strings.Cut(rest[end:], "= ")
	if !ok {
		return c, nil
	}
	digits, _, _ := strings.Cut(result, " ")
	digits, _, _ = strings.Cut(digits, "<")
	if digits == "?" { // the process ended in the middle
		c.failed = true
		return c, nil
	}
	c.result, err = strconv.ParseInt(digits, 0, 64)
	c.failed = c.result < 0
	return c, err
}

// fd returns the number and the annotation of a descriptor such as `7</tmp/x>`.
func (c call) fd(i int) (n int, about string) {
	if i >= len(c.args) {
		return -1, ""
	}
	digits, about, _ := strings.Cut(c.args[i], "<")
	if digits == "AT_FDCWD" {
		return -1, ""
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1, ""
	}
	return n, strings.TrimSuffix(about, ">")
}

// text returns the bytes of a quoted argument. strace cuts a long one off and puts dots behind it.
func (c call) text(i int) (string, error) {
	if i >= len(c.args) || !strings.HasPrefix(c.args[i], `"`) || !strings.HasSuffix(c.args[i], `"`) {
		return "", fmt.Errorf("%s: argument %d is no whole string", c.name, i)
	}
	quoted := c.args[i][1 : len(c.args[i])-1]
	if !strings.Contains(quoted, `\`) {
		return quoted, nil
	}
	var out strings.Builder
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			out.WriteByte(quoted[i])
			continue
		}
		i++
		if i == len(quoted) {
			return "", fmt.Errorf("%s: a string ends with a backslash", c.name)
		}
		if at := strings.IndexByte(`ntrvfabe`, quoted[i]); at >= 0 {
			out.WriteByte("\n\t\r\v\f\a\b\x1b"[at])
			continue
		}
		if quoted[i] < '0' || quoted[i] > '7' {
			out.WriteByte(quoted[i])
			continue
		}
		octal := i
		for i+1 < len(quoted) && i-octal < 2 && quoted[i+1] >= '0' && quoted[i+1] <= '7' {
			i++
		}
		b, err := strconv.ParseUint(quoted[octal:i+1], 8, 8)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.name, err)
		}
		out.WriteByte(byte(b))
	}
	return out.String(), nil
}

func (c call) number(i int) (int64, error) {
	if i >= len(c.args) {
		return 0, fmt.Errorf("%s: no argument %d", c.name, i)
	}
	return strconv.ParseInt(c.args[i], 0, 64)
}

func (c call) has(i int, flag string) bool {
	return i < len(c.args) && strings.Contains(c.args[i], flag)
}

// mode returns the mode argument, in octal.
func (c call) mode(i int) (fs.FileMode, error) {
	n, err := c.number(i)
	return fs.FileMode(n & 0o777), err //nolint:gosec // nine bits
}

// add appends an operation.
func (r *reader) add(apply func(*disk) error) { r.ops = append(r.ops, op{apply: apply}) }

// begins notes what a sync that begins here will cover: nothing that comes while it runs. It notes
// the file that an open names here: another thread may remove it before the open has returned. And
// the number of a descriptor is free as soon as close begins: another thread may get it before close
// has returned.
func (r *reader) begins(thread, text string) error {
	switch name, _, _ := strings.Cut(text, "("); name {
	case "open", "creat", "openat", "openat2":
		c, err := parse(text)
		if err != nil {
			return err
		}
		at, path := split(c, "openat", "openat2")
		p, err := r.place(c, at, path)
		r.add(func(d *disk) error {
			folder, base := p.in(d, r.root)
			d.opens[thread] = walk(folder, base)
			return nil
		})
		return err
	case "close":
		c, err := parse(text)
		n, _ := c.fd(0)
		r.add(func(d *disk) error { delete(d.fds, n); return nil })
		return err
	case "fsync", "fdatasync", "syncfs", "sync":
		c, err := parse(text)
		if err != nil {
			return err
		}
		n, _ := c.fd(0)
		whole := strings.HasPrefix(name, "sync")
		r.add(func(d *disk) error {
			d.marks[thread] = nil
			switch of := d.fds[n]; {
			case name == "syncfs" && of == nil: // of another file system, as far as we know
			case whole:
				for _, n := range d.all {
					d.marks[thread] = append(d.marks[thread], n.mark())
				}
			case of != nil:
				d.marks[thread] = []mark{of.node.mark()}
			}
			return nil
		})
	}
	return nil
}

// ends applies a call that has returned.
func (r *reader) ends(thread, text string) error {
	c, err := parse(text)
	if err != nil || c.failed {
		return err
	}
	switch c.name {
	case "fsync", "fdatasync", "syncfs", "sync":
		r.ops = append(r.ops, op{syncs: true, apply: func(d *disk) error {
			for _, m := range d.marks[thread] {
				m.settle()
			}
			return nil
		}})
		return nil
	case "write":
		if _, about := c.fd(0); strings.HasPrefix(about, "socket:") {
			text, err := c.text(1)
			r.sent = append(r.sent, message{len(r.ops), text})
			return err
		}
	}
	apply, err := r.change(thread, c)
	if err == nil && apply != nil {
		r.add(apply)
	}
	return err
}

// place is a name in a folder that may be ours.
type place struct {
	fd       int    // -1: of the working folder, or absolute
	absolute string // cleaned; "" if it is relative to fd
	name     string
}

func (r *reader) place(c call, fd, name int) (place, error) {
	text, err := c.text(name)
	p := place{fd: -1, name: text}
	if fd >= 0 {
		p.fd, _ = c.fd(fd)
	}
	if p.fd >= 0 && !filepath.IsAbs(text) {
		return p, err
	}
	p.absolute, _ = filepath.Abs(text)
	return p, err
}

// in returns the folder and the last part of a place, or nil if it is none of ours.
func (p place) in(d *disk, root string) (*node, string) {
	from, name := d.top, p.name
	if p.absolute != "" {
		rel, err := filepath.Rel(root, p.absolute)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			return nil, ""
		}
		name = rel
	} else {
		of := d.fds[p.fd]
		if of == nil {
			return nil, ""
		}
		from = of.node
	}
	folder, base := filepath.Split(name)
	return walk(from, folder), base
}

// change returns what a thread's call does to a disk; nil: nothing.
func (r *reader) change(thread string, c call) (func(*disk) error, error) { //nolint:gocyclo,cyclop // one case a system call
	switch c.name {
	case "open", "creat", "openat", "openat2":
		return r.open(thread, c)
	case "mkdir", "mkdirat":
		at, path := split(c, "mkdirat")
		p, err := r.place(c, at, path)
		return func(d *disk) error {
			if folder, base := p.in(d, r.root); folder != nil && base != "" && base != "." {
				folder.rename(rename{base: base, to: d.make(true, 0o755)})
			}
			return nil
		}, err
	case "unlink", "unlinkat", "rmdir":
		at, path := split(c, "unlinkat")
		p, err := r.place(c, at, path)
		return func(d *disk) error {
			if folder, base := p.in(d, r.root); folder != nil {
				folder.rename(rename{base: base})
			}
			return nil
		}, err
	case "link", "linkat", "rename", "renameat", "renameat2":
		return r.move(c)
	case "dup", "dup2", "dup3", "fcntl":
		n, _ := c.fd(0)
		if c.name == "fcntl" && !c.has(1, "F_DUPFD") {
			return nil, nil
		}
		return func(d *disk) error {
			if of := d.fds[n]; of != nil {
				d.fds[int(c.result)] = of
			} else {
				delete(d.fds, int(c.result))
			}
			return nil
		}, nil
	case "write", "pwrite64":
		return r.write(c)
	case "copy_file_range":
		from, _ := c.fd(0)
		to, _ := c.fd(2)
		if !c.has(1, "NULL") || !c.has(3, "NULL") {
			break
		}
		return func(d *disk) error {
			in, out := d.fds[from], d.fds[to]
			if in == nil && out == nil {
				return nil
			}
			if in == nil || out == nil || in.offset+c.result > int64(len(in.node.data)) {
				return errors.New("copy_file_range: the model does not have the bytes")
			}
			data := slices.Clone(in.node.data[in.offset:][:c.result])
			out.node.change(change{offset: out.offset, data: data})
			in.offset, out.offset = in.offset+c.result, out.offset+c.result
			return nil
		}, nil
	case "ftruncate", "lseek":
		n, _ := c.fd(0)
		size, err := c.number(1)
		return func(d *disk) error {
			switch of := d.fds[n]; {
			case of == nil:
			case c.name == "lseek":
				of.offset = c.result
			default:
				of.node.change(change{offset: size})
			}
			return nil
		}, err
	case "fchmod":
		n, _ := c.fd(0)
		mode, err := c.mode(1)
		return func(d *disk) error {
			if of := d.fds[n]; of != nil && !of.node.folder {
				of.node.change(change{mode: &mode})
			}
			return nil
		}, err
	case "chmod", "fchmodat", "truncate":
		at, path := split(c, "fchmodat")
		p, err := r.place(c, at, path)
		if err != nil {
			return nil, err
		}
		var to change
		if c.name == "truncate" {
			to.offset, err = c.number(path + 1)
		} else {
			var mode fs.FileMode
			mode, err = c.mode(path + 1)
			to.mode = &mode
		}
		return func(d *disk) error {
			if folder, base := p.in(d, r.root); folder != nil {
				if n := walk(folder, base); n != nil && !n.folder {
					n.change(to)
				}
			}
			return nil
		}, err
	case "close", "sync_file_range":
		return nil, nil // close took effect when it began; the other promises nothing
	}
	return func(d *disk) error {
		for i := range c.args {
			if n, _ := c.fd(i); n >= 0 && d.fds[n] != nil && strings.Contains(c.args[i], "<") {
				return fmt.Errorf("%s is not part of the model", c.name)
			}
		}
		return nil
	}, nil
}

// split returns where a call has its folder and its path: the forms with "at" have both.
func split(c call, at ...string) (fd, path int) {
	if slices.Contains(at, c.name) {
		return 0, 1
	}
	return -1, 0
}

func (r *reader) open(thread string, c call) (func(*disk) error, error) {
	at, path := split(c, "openat", "openat2")
	p, err := r.place(c, at, path)
	if err != nil {
		return nil, err
	}
	flags := path + 1
	var mode fs.FileMode
	if creates := c.name == "creat" || c.has(flags, "O_CREAT") || c.has(flags, "O_TMPFILE"); creates {
		if mode, err = c.mode(len(c.args) - 1); err != nil {
			return nil, err
		}
	}
	return func(d *disk) error {
		delete(d.fds, int(c.result))
		folder, base := p.in(d, r.root)
		n, before := walk(folder, base), d.opens[thread]
		delete(d.opens, thread)
		if n == nil && c.name != "creat" && !c.has(flags, "O_CREAT") {
			n = before // removed since the call began
		}
		switch {
		case folder == nil && n == nil:
			return nil
		case c.has(flags, "O_TMPFILE"):
			n = d.make(false, mode)
		case n == nil && (c.name == "creat" || c.has(flags, "O_CREAT")):
			n = d.make(false, mode)
			folder.rename(rename{base: base, to: n})
		case n == nil:
			return fmt.Errorf("open %q: the model has no such file", p.name)
		case c.has(flags, "O_TRUNC") || c.name == "creat":
			n.change(change{})
		}
		d.fds[int(c.result)] = &descriptor{node: n, appended: c.has(flags, "O_APPEND")}
		return nil
	}, nil
}

func (r *reader) write(c call) (func(*disk) error, error) {
	n, about := c.fd(0)
	if !strings.HasPrefix(about, "/") {
		return nil, nil // a socket, a pipe, a counter
	}
	text, err := c.text(1)
	if err != nil {
		return nil, err
	}
	data, offset := []byte(text)[:c.result], int64(-1)
	if c.name == "pwrite64" {
		if offset, err = c.number(3); err != nil {
			return nil, err
		}
	}
	return func(d *disk) error {
		of := d.fds[n]
		if of == nil {
			return nil
		}
		at := offset
		if at < 0 {
			if of.appended {
				of.offset = int64(len(of.node.data))
			}
			at = of.offset
			of.offset += int64(len(data))
		}
		of.node.change(change{offset: at, data: data})
		return nil
	}, nil
}

// move is linking and renaming.
func (r *reader) move(c call) (func(*disk) error, error) {
	fd, path, fd2, path2 := 0, 1, 2, 3
	if c.name == "link" || c.name == "rename" {
		fd, path, fd2, path2 = -1, 0, -1, 1
	}
	from, err := r.place(c, fd, path)
	if err != nil {
		return nil, err
	}
	to, err := r.place(c, fd2, path2)
	if err != nil {
		return nil, err
	}
	opened := -1
	if text, ok := strings.CutPrefix(from.absolute, "/proc/self/fd/"); ok {
		if opened, err = strconv.Atoi(text); err != nil {
			return nil, err
		}
	}
	return func(d *disk) error {
		folder, base := to.in(d, r.root)
		var n, source *node
		var name string
		if opened >= 0 {
			if of := d.fds[opened]; of != nil {
				n = of.node
			}
		} else if source, name = from.in(d, r.root); source != nil {
			n = walk(source, name)
		}
		switch {
		case folder == nil && n == nil:
			return nil
		case folder == nil || n == nil:
			return fmt.Errorf("%s %q to %q: only one of them is below the root", c.name, from.name, to.name)
		}
		switch renamed := strings.HasPrefix(c.name, "rename"); {
		case renamed && source == folder:
			folder.rename(rename{base: base, to: n, from: name})
		case renamed:
			moved(source, name, folder, base, n)
		default:
			folder.rename(rename{base: base, to: n})
		}
		return nil
	}, nil
}
