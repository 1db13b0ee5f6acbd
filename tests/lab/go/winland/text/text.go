// Package text holds the words that Windows prints, in English and German. German exists only where a real capture is
// known (SecretLUL/WinMedic and public issue threads); everything else stays English on a German host, as some of
// Windows does too. Exit codes and numbers never depend on it.
package text

import "fmt"

var messages = map[int]string{
	2:    "The system cannot find the file specified.",
	3:    "The system cannot find the path specified.",
	5:    "Access is denied.",
	32:   "The process cannot access the file because it is being used by another process.",
	50:   "The request is not supported.",
	80:   "The file exists.",
	87:   "The parameter is incorrect.",
	112:  "There is not enough space on the disk.",
	122:  "The data area passed to a system call is too small.",
	123:  "The filename, directory name, or volume label syntax is incorrect.",
	145:  "The directory is not empty.",
	183:  "Cannot create a file when that file already exists.",
	193:  "%1 is not a valid Win32 application.",
	225:  "Operation did not complete successfully because the file contains a virus or potentially unwanted software.",
	234:  "More data is available.",
	267:  "The directory name is invalid.",
	577:  "Windows cannot verify the digital signature for this file. A recent hardware or software change might have installed a file that is signed incorrectly or damaged, or that might be malicious software from an unknown source.",
	1051: "A stop control has been sent to a service that other running services are dependent on.",
	1053: "The service did not respond to the start or control request in a timely fashion.",
	1056: "An instance of the service is already running.",
	1057: "The account name is invalid or does not exist, or the password is invalid for the account name specified.",
	1058: "The service cannot be started, either because it is disabled or because it has no enabled devices associated with it.",
	1060: "The specified service does not exist as an installed service.",
	1061: "The service cannot accept control messages at this time.",
	1062: "The service has not been started.",
	1067: "The process terminated unexpectedly.",
	1068: "The dependency service or group failed to start.",
	1069: "The service did not start due to a logon failure.",
	1072: "The specified service has been marked for deletion.",
	1073: "The specified service already exists.",
	1077: "No attempts to start the service have been made since the last boot.",
	1078: "The name is already in use as either a service name or a service display name.",
	1260: "This program is blocked by group policy. For more information, contact your system administrator.",
	1332: "No mapping between account names and security IDs was done.",
}

var german = map[int]string{
	1060: "Der angegebene Dienst ist kein installierter Dienst.",
	1332: "Zuordnungen von Kontennamen und Sicherheitskennungen wurden nicht durchgeführt.",
}

// Message is the sentence of a Win32 error.
func Message(lang string, code int) string {
	if lang == "de" {
		if s, ok := german[code]; ok {
			return s
		}
	}
	if s, ok := messages[code]; ok {
		return s
	}
	return fmt.Sprintf("winland: no text for error %d", code)
}

// Symbol is the constant that certutil prints beside an HRESULT.
func Symbol(code int) string {
	s := map[int]string{
		2: "ERROR_FILE_NOT_FOUND", 3: "ERROR_PATH_NOT_FOUND", 5: "ERROR_ACCESS_DENIED", 32: "ERROR_SHARING_VIOLATION",
		123: "ERROR_INVALID_NAME", 225: "ERROR_VIRUS_INFECTED", 1006: "ERROR_FILE_INVALID",
	}[code]
	if s == "" {
		return fmt.Sprintf("ERROR_%d", code)
	}
	return s
}

// Group writes a number with the separators of the language; "plain" has none.
func Group(n uint64, lang string) string {
	s, sep := fmt.Sprint(n), ","
	if lang == "plain" {
		return s
	}
	if lang == "de" {
		sep = "."
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + sep + s[i:]
	}
	return s
}
