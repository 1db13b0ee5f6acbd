// Package shell interprets command lines as Windows' cmd.exe does. The rules follow the published analyses of cmd's
// phases (percent expansion, parser, FOR variables, delayed expansion) and the facts measured over WinRS by the projects
// that README.md names. A form that is not implemented is refused loudly.
package shell

import (
	"errors"
	"fmt"
	"strings"
)

type redirection struct {
	fd     int
	op     string // > >> < or & for 2>&1
	target string
}

type (
	// simple is one command; text has its carets resolved, variables of FOR and !x! still in it.
	simple struct {
		text   string
		redirs []redirection
	}
	group struct {
		body   any
		redirs []redirection
	}
	binary struct {
		op          string // & || && |
		left, right any
	}
	condition struct {
		not, fold bool
		kind      string // exist errorlevel defined == equ neq lss leq gtr geq
		a, b      string
		then, els any
	}
	loop struct {
		kind, options string // kind: "", /l, /f
		name          rune
		set           string
		body          any
	}
)

// errUnknown marks forms that real cmd knows and this interpreter does not.
var errUnknown = errors.New("winland: unknown form")

type parser struct {
	s     []rune
	pos   int
	depth int
}

func parse(line string) (any, error) {
	p := &parser{s: []rune(line)}
	p.delims()
	if p.end() {
		return nil, nil
	}
	n, err := p.chain(0)
	if err == nil && !p.end() {
		err = p.unexpected()
	}
	return n, err
}

func (p *parser) end() bool { return p.pos >= len(p.s) }

func (p *parser) at(t string) bool {
	return strings.HasPrefix(string(p.s[p.pos:min(len(p.s), p.pos+len(t))]), t)
}

// delims skips what separates words; before a command cmd skips all of them.
func (p *parser) delims() {
	for !p.end() && strings.ContainsRune(" \t,;=", p.s[p.pos]) {
		p.pos++
	}
}

func (p *parser) blanks() {
	for !p.end() && (p.s[p.pos] == ' ' || p.s[p.pos] == '\t') {
		p.pos++
	}
}

func (p *parser) unexpected() error {
	if p.end() {
		return errors.New("")
	}
	rest := string(p.s[p.pos:])
	if i := strings.IndexAny(rest[1:], " \t"); i >= 0 && !strings.ContainsRune("&|", p.s[p.pos]) {
		rest = rest[:i+1]
	} else if strings.ContainsRune("&|", p.s[p.pos]) {
		rest = rest[:1]
	}
	return errors.New(rest)
}

// operators from the loosest to the tightest.
var operators = []string{"&", "||", "&&", "|"}

// chain parses one level of operators; the loosest takes a whole line or a whole body of IF and FOR.
func (p *parser) chain(level int) (any, error) {
	if level == len(operators) {
		return p.command()
	}
	left, err := p.chain(level + 1)
	if err != nil {
		return nil, err
	}
	op := operators[level]
	for {
		p.blanks()
		if !p.at(op) || len(op) == 1 && p.at(op+op) {
			return left, nil
		}
		p.pos += len(op)
		p.delims()
		if op == "&" && (p.end() || p.depth > 0 && p.at(")")) {
			return left, nil
		}
		right, err := p.chain(level + 1)
		if err != nil {
			return nil, err
		}
		left = &binary{op, left, right}
	}
}

func (p *parser) command() (any, error) {
	p.delims()
	for p.at("@") {
		p.pos++
		p.delims()
	}
	if p.end() || strings.ContainsRune("&|)", p.s[p.pos]) {
		return nil, p.unexpected()
	}
	if p.at("(") {
		return p.block()
	}
	start := p.pos
	switch strings.ToLower(p.word()) {
	case "if":
		return p.condition()
	case "for":
		return p.loop()
	case "rem":
		if p.blanks(); !p.at("&") && !p.at("|") {
			p.pos = len(p.s) // REM takes the rest of the line, operators included
		}
		return &simple{text: "rem"}, nil
	}
	p.pos = start
	return p.simple()
}

func (p *parser) block() (any, error) {
	p.pos++
	p.depth++
	body, err := p.chain(0)
	if err != nil {
		return nil, err
	}
	p.delims()
	if !p.at(")") {
		return nil, p.unexpected()
	}
	p.pos++
	p.depth--
	g := &group{body: body}
	for {
		p.blanks()
		fd := -1
		if p.pos+1 < len(p.s) && isDigit(p.s[p.pos]) && strings.ContainsRune("<>", p.s[p.pos+1]) {
			fd = int(p.s[p.pos] - '0')
			p.pos++
		}
		if !p.at("<") && !p.at(">") {
			return g, nil
		}
		r, err := p.redirection(fd)
		if err != nil {
			return nil, err
		}
		g.redirs = append(g.redirs, r)
	}
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func (p *parser) simple() (any, error) {
	n := &simple{}
	var text []rune
	quoted := false
	for !p.end() {
		c := p.s[p.pos]
		switch {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '^':
			p.pos++
			if p.end() {
				continue
			}
			c = p.s[p.pos]
		case c == '&', c == '|', c == ')' && p.depth > 0:
			n.text = string(text)
			return n, nil
		case c == '<', c == '>':
			fd := -1
			if l := len(text); l > 0 && isDigit(text[l-1]) && (l == 1 || strings.ContainsRune(" \t,;=", text[l-2])) {
				fd = int(text[l-1] - '0')
				text = text[:l-1]
			}
			r, err := p.redirection(fd)
			if err != nil {
				return nil, err
			}
			n.redirs = append(n.redirs, r)
			continue
		}
		text = append(text, c)
		p.pos++
	}
	n.text = string(text)
	return n, nil
}

func (p *parser) redirection(fd int) (redirection, error) {
	op := string(p.s[p.pos])
	p.pos++
	if op == ">" && p.at(">") {
		op = ">>"
		p.pos++
	}
	if fd < 0 && op == "<" {
		fd = 0
	} else if fd < 0 {
		fd = 1
	}
	if p.at("&") {
		p.pos++
		if p.end() || !isDigit(p.s[p.pos]) || op == "<" {
			return redirection{}, p.unexpected()
		}
		p.pos++
		return redirection{fd, "&", string(p.s[p.pos-1])}, nil
	}
	p.delims()
	target := strings.ReplaceAll(p.word(), `"`, "")
	if target == "" {
		return redirection{}, p.unexpected()
	}
	return redirection{fd, op, target}, nil
}

// word reads up to a separator or operator; quotes stay, carets are resolved.
func (p *parser) word() string {
	p.delims()
	var b strings.Builder
	quoted := false
	for start := p.pos; !p.end(); p.pos++ {
		c := p.s[p.pos]
		if c == '"' {
			quoted = !quoted
		} else if !quoted {
			if c == '^' && p.pos+1 < len(p.s) {
				p.pos++
				c = p.s[p.pos]
			} else if strings.ContainsRune(" \t,;=&|<>)", c) || c == '(' && p.pos > start {
				break
			}
		}
		b.WriteRune(c)
	}
	return b.String()
}

func (p *parser) condition() (any, error) {
	n := &condition{}
	w := p.word()
	for {
		if strings.EqualFold(w, "not") {
			n.not = true
		} else if strings.EqualFold(w, "/i") {
			n.fold = true
		} else {
			break
		}
		w = p.word()
	}
	switch n.kind = strings.ToLower(w); n.kind {
	case "exist", "errorlevel", "defined":
		n.a = p.word()
	case "cmdextversion":
		return nil, fmt.Errorf("%w: if cmdextversion", errUnknown)
	default:
		n.a = w
		p.blanks()
		if p.at("==") {
			p.pos += 2
			n.kind = "=="
		} else {
			n.kind = strings.ToLower(p.word())
			if !strings.Contains(" equ neq lss leq gtr geq ", " "+n.kind+" ") {
				return nil, errors.New(n.kind)
			}
		}
		n.b = p.word()
	}
	var err error
	p.delims()
	if p.end() {
		return nil, p.unexpected()
	}
	if n.then, err = p.chain(0); err != nil {
		return nil, err
	}
	if _, ok := n.then.(*group); !ok {
		return n, nil
	}
	start := p.pos
	if !strings.EqualFold(p.word(), "else") {
		p.pos = start
		return n, nil
	}
	n.els, err = p.chain(0)
	return n, err
}

func (p *parser) loop() (any, error) {
	n := &loop{}
	w := p.word()
	if strings.HasPrefix(w, "/") {
		n.kind = strings.ToLower(w)
		if n.kind != "/l" && n.kind != "/f" && n.kind != "/d" {
			return nil, fmt.Errorf("%w: for %s", errUnknown, n.kind)
		}
		if w = p.word(); n.kind == "/f" && strings.HasPrefix(w, `"`) {
			n.options = strings.Trim(w, `"`)
			w = p.word()
		}
	}
	name := []rune(w)
	if len(name) != 2 || name[0] != '%' {
		return nil, errors.New(w)
	}
	n.name = name[1]
	if w = p.word(); !strings.EqualFold(w, "in") {
		return nil, errors.New(w)
	}
	if p.delims(); !p.at("(") {
		return nil, p.unexpected()
	}
	p.pos++
	var set []rune
	quoted := false
	for ; ; p.pos++ {
		if p.end() {
			return nil, p.unexpected()
		}
		c := p.s[p.pos]
		if c == '"' {
			quoted = !quoted
		} else if !quoted && c == ')' {
			break
		} else if !quoted && strings.ContainsRune("&|<>", c) {
			return nil, p.unexpected()
		} else if !quoted && c == '^' && p.pos+1 < len(p.s) {
			p.pos++
			c = p.s[p.pos]
		}
		set = append(set, c)
	}
	p.pos++
	n.set = string(set)
	if w = p.word(); !strings.EqualFold(w, "do") {
		return nil, errors.New(w)
	}
	var err error
	if p.delims(); p.end() {
		return nil, p.unexpected()
	}
	n.body, err = p.chain(0)
	return n, err
}

// Steps lists the simple commands of a line as they stand in it, those of nested command processors included; the body
// of a FOR counts once.
func Steps(line string) []string {
	n, err := parse(line)
	if err != nil {
		return nil
	}
	var out []string
	var walk func(n any)
	walk = func(n any) {
		switch n := n.(type) {
		case *binary:
			walk(n.left)
			walk(n.right)
		case *group:
			walk(n.body)
		case *condition:
			walk(n.then)
			if n.els != nil {
				walk(n.els)
			}
		case *loop:
			walk(n.body)
		case *simple:
			text := strings.Trim(n.text, " \t")
			if isCmd(text) {
				if _, inner, ok := nestedLine(text); ok {
					out = append(out, Steps(inner)...)
				}
			} else if text != "" && text != "rem" {
				out = append(out, text)
			}
		}
	}
	walk(n)
	return out
}
