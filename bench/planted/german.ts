/** Templates of planted conversations in German. */
import type { Kit } from './kit.ts';

export const german: Kit = {
  language: 'German',
  locale: 'de',
  things: {
    research: [
      ['Harsfelder', 'Kelbacher', 'Marstedter', 'Eichtaler', 'Brinner', 'Dornauer', 'Selwiger', 'Dunmoorer'],
      [' Mühle', ' Institut', ' Hafen', ' Presse', ' Gießerei', ' Archiv'],
    ],
    coding: [
      ['lese', 'schreibe', 'mische', 'leite', 'signiere', 'teile', 'ordne', 'zaehle'],
      ['Schlange', 'Kopf', 'Sitzung', 'Konto', 'Zeiger', 'Paket'],
    ],
    support: [
      ['Bestellung A-', 'Vorgang T-', 'Rechnung R-', 'Paket P-'],
      ['4711', '2093', '8830', '5127', '6648', '3902', '7215', '1186'],
    ],
    data: [
      ['netto_', 'brutto_', 'tages_', 'schwund_', 'region_', 'kohorte_'],
      ['umsatz', 'besuche', 'storni', 'anmeldungen', 'marge', 'dauer'],
    ],
  },
  phrases: {
    research: [
      'eine Familie von Buchbindern',
      'das Hochwasser in der Unterstadt',
      'ein Darlehen der Stadt',
      'zwei zerstrittene Erben',
    ],
    coding: [
      'eine nie freigegebene Sperre',
      'ein Zählfehler auf der letzten Seite',
      'eine veraltete Kopie der Einstellungen',
      'die falsche Zeitzone',
    ],
    support: [
      'ein beschädigtes Etikett',
      'eine abgelaufene Karte',
      'eine falsche Hausnummer',
      'eine doppelte Buchung',
    ],
    data: [
      'verspätete Ereignisse der App',
      'doppelte Zeilen eines Importes',
      'eine umgestellte Währung',
      'fehlende Wochenenden',
    ],
  },
  numbers: {
    research: ['im Jahr 18{d}', '{d} Mitglieder', '{d} Hektar'],
    coding: ['{d} ms', 'Zeile {d}', '{d} kB'],
    support: ['{d},50 Euro', 'am {d}. Mai', '{d} Tage'],
    data: ['{d} %', '{d} Zeilen', '{d},4 Punkte'],
  },
  goals: [
    'Trag bitte alles über {t} zusammen und fass es für mich auf.',
    'Ich brauche ein klares Bild von {t}, schau dir das bitte an.',
  ],
  demands: [
    'In nichts, was an Kunden geht, darf {t} vorkommen.',
    'Die Summe für {t} muss unter {n} bleiben.',
    'Bitte metrische Einheiten und durchgehend die Schreibweise „{t}“.',
    'Frag mich, bevor du {t} anfasst.',
    'Bei {t} ist {n} die Obergrenze und kein Vorschlag.',
    'das mit {t} bitte nicht einchecken, ich will erst draufsehen',
    'Alles zu {t} auf ganze Zahlen runden.',
    'Anna liest deinen Text zu {t}, bevor ihn sonst jemand sieht.',
  ],
  findings: {
    research: [
      '{t} geht auf {p} zurück, anders als die offizielle Seite behauptet.',
      'Zwei Quellen zufolge kam {t} zur besten Zeit auf {n}.',
      'Ihre Rechte verlor {t} also durch {p}.',
      'Nur bei {n} für {t} sind sich beide Kataloge einig.',
      'Hinter {t} stand am Ende {p}.',
      'Die Akten nennen für {t} {n}.',
    ],
    coding: [
      'Der Absturz in {t} kommt durch {p} zustande.',
      '{t} braucht {n}, das Zehnfache des Erwarteten.',
      'Schuld an {t} ist {p}.',
      'An {n} hängt alles in {t}.',
      'Mit {t} ist alles in Ordnung, {p} weiter oben stört.',
      'Noch einmal gemessen: {t} liegt bei {n}.',
    ],
    support: [
      '{t} blieb liegen, Grund ist {p}.',
      'Bezahlt hat der Kunde für {t} {n}.',
      'Hinter {t} steckt {p}.',
      'Beide Systeme zeigen für {t} {n}.',
      'An {t} stimmt alles, nur {p} nicht.',
      'Der Partner bestätigt {n} für {t}.',
    ],
    data: [
      'Der Einbruch bei {t} ist {p}, nicht die Kampagne.',
      '{t} hat sich zwischen den Quartalen um {n} bewegt.',
      'Verzerrt wird {t} durch etwas anderes: {p}.',
      'Bereinigt ergibt {t} {n}.',
      'Vor März ist auf {t} kein Verlass, siehe {p}.',
      'Nach dem Filter bleiben von {t} {n}.',
    ],
  },
  decisions: [
    'Wir nehmen {t} und lassen {u} weg, denn {p} wiegt schwer.',
    '{t} bleibt lieber, wie es ist: {p} gibt den Ausschlag.',
    'Dann also {t}; gegen {u} spricht {p}.',
    'Die Wahl fällt auf {t} statt {u}, wegen {p}.',
  ],
  open: [
    'Offen ist noch, ob {t} wirklich {n} hatte.',
    'Um {n} bei {t} hat sich bisher niemand gekümmert.',
    'Übrig bleibt {t}, dort ist {n} ungeklärt.',
    'Ungeprüft: {n} bei {t}.',
  ],
  outcomes: [
    'Fertig: {t} steht jetzt bei {n}.',
    'Damit ist {t} geklärt, Ergebnis {n}.',
    '{t} läuft wieder, zuletzt {n}.',
    'Mit {t} bin ich durch, am Ende {n}.',
  ],
  plans: [
    'Vergleich von {t} mit dem Vorjahr',
    'Abschnitt über {t} verfassen',
    'Inhaber von {t} fragen',
    'Lauf für {t} wiederholen',
  ],
  announcements: [
    'Ich sehe mir als Nächstes {u} an.',
    'Jetzt öffne ich {u}.',
    'Zuerst prüfe ich {u}, dann geht es weiter.',
    'Weiter mit {u}.',
    'Ein Blick auf {u}, um zu sehen, wie es zusammenpasst.',
    'Ich suche nach {u}.',
  ],
  small: ['ok, mach weiter', 'danke, weiter bitte', 'klingt gut', 'von mir aus', 'ja bitte', 'super'],
  prose: [
    'Die Gegend um {u} ist oft beschrieben worden, unter anderem von einem Reisenden nach {n}.',
    '{u} ist einer von mehreren Einträgen dieser Art in der Liste.',
    'Besucher von {u} benutzen bitte den Seiteneingang.',
    'Eine neuere Übersicht erwähnt {u} nur am Rande, mit {n}.',
    'Nutzungsbedingungen und Kontakt siehe {u}.',
    'Die folgende Tabelle wiederholt frühere Angaben zu {u}.',
    'Diesem Abschnitt fehlen Belege.',
    'Ähnliche Fälle sind von {u} und Umgebung bekannt.',
  ],
};
