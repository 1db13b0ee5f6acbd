package text

import "testing"

func TestCodePages(t *testing.T) {
	for page, want := range map[int]string{437: "Gr\x94\xe1e \x3f", 850: "Gr\x94\xe1e \x3f", 65001: "Größe €"} {
		if got := string(Encode(page, "Größe €")); got != want {
			t.Errorf("%d: %q, want %q", page, got, want)
		}
	}
	for page, high := range pages {
		if len(high) != 128 {
			t.Fatalf("%d has %d characters in its upper half", page, len(high))
		}
		if got := Decode(page, Encode(page, string(high))); got != string(high) {
			t.Errorf("%d does not come back", page)
		}
	}
	if Decode(65001, []byte("a\xff")) != "a\uFFFD" {
		t.Error("broken UTF-8")
	}
}

func TestGerman(t *testing.T) {
	if Message("de", 1060) != "Der angegebene Dienst ist kein installierter Dienst." || Message("de", 5) != Message("en", 5) {
		t.Error("only captured texts are German")
	}
	if Group(14348, "de") != "14.348" || Group(5844, "en") != "5,844" || Group(999, "en") != "999" {
		t.Error("separators")
	}
}
