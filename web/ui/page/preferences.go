package page

import (
	"net/http"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the image has no time zones of its own

	"github.com/holdfast/holdfast/web/ui/lang"
)

// Cookies of preferences, beside that of package lang. The pages' script sets the zone to the
// browser's.
const (
	zoneCookie  = "zone"
	themeCookie = "theme"
)

// preferencesKept is how long a browser keeps preferences.
const preferencesKept = 365 * 24 * time.Hour

// ZoneOf returns the viewer's time zone: UTC unless a cookie names another one.
func ZoneOf(r *http.Request) *time.Location {
	c, err := r.Cookie(zoneCookie)
	if err != nil {
		return time.UTC
	}
	return zoneNamed(c.Value)
}

// zoneNamed returns a time zone by its IANA name, or UTC if there is none.
func zoneNamed(name string) *time.Location {
	zone, ok := findZone(name)
	if !ok {
		return time.UTC
	}
	return zone
}

func findZone(name string) (zone *time.Location, ok bool) {
	const most = 64
	if len(name) > most || name == "Local" { // which would be the server's
		return nil, false
	}
	zone, err := time.LoadLocation(strings.ReplaceAll(name, "%2F", "/"))
	return zone, err == nil
}

func themeOf(r *http.Request) Theme {
	c, err := r.Cookie(themeCookie)
	if err != nil || !slices.Contains(themes(), Theme(c.Value)) {
		return ThemeSystem
	}
	return Theme(c.Value)
}

func themes() []Theme { return []Theme{ThemeSystem, ThemeLight, ThemeDark} }

func (v *view) preferences(r *http.Request) Preferences {
	return Preferences{Lang: v.texts.Tag, Languages: v.site.texts.Languages(), Zone: v.zone.String(), Theme: themeOf(r), Themes: themes()}
}

// setPreferences keeps what the form in the footer says, and leads back.
func (s *Site) setPreferences(w http.ResponseWriter, r *http.Request) {
	if err := parseForm(r); err != nil {
		s.Fail(w, r, Invalid("the form could not be read"))
		return
	}
	zone, ok := findZone(strings.TrimSpace(r.PostForm.Get("zone")))
	if !ok {
		s.Fail(w, r, Invalid("there is no time zone of this name; examples are Europe/Berlin, America/New_York and UTC"))
		return
	}
	for cookie, value := range map[string]string{lang.Cookie: r.PostForm.Get("lang"), themeCookie: r.PostForm.Get("theme"), zoneCookie: zone.String()} {
		http.SetCookie(w, &http.Cookie{
			Name: cookie, Value: strings.Map(plain, value), Path: "/", MaxAge: int(preferencesKept / time.Second), SameSite: http.SameSiteLaxMode,
			Secure: r.TLS != nil,
		})
	}
	http.Redirect(w, r, Local(r.PostForm.Get("next")), http.StatusSeeOther)
}

// plain keeps the characters of tags and names of zones.
func plain(c rune) rune {
	if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/_+-", c) {
		return c
	}
	return -1
}

// Local returns an address of this site, or "/" instead of one of another site.
func Local(address string) string {
	if !strings.HasPrefix(address, "/") || strings.HasPrefix(address, "//") || strings.ContainsAny(address, "\\\r\n") {
		return "/"
	}
	return address
}
