import type { Language } from '../../demo-info.ts'

/** A place in a text: its English name, which the weather tool expects, and its position. */
export interface FoundPlace {
  readonly name: string
  readonly start: number
  readonly end: number
}

/** Finds known places in either script, in order of appearance. The longest name at a position is used. */
export function findKnownPlaces(text: string): FoundPlace[] {
  return [...text.matchAll(KNOWN)].flatMap(({ 0: written, index }) => {
    const name = ENGLISH_BY_SPELLING.get(written.toLowerCase())
    return name === undefined ? [] : [{ name, start: index, end: index + written.length }]
  })
}

/** Returns the English name of a known place, or the place as written. */
export function englishPlace(written: string): string {
  return ENGLISH_BY_SPELLING.get(written.toLowerCase()) ?? written
}

/** Returns the name of a place in the language. */
export function placeFor(name: string, language: Language): string {
  return language === 'ja' ? (JAPANESE_BY_ENGLISH.get(name.toLowerCase()) ?? name) : name
}

/** The English name, then other spellings. The first of them is the Japanese name. */
const GAZETTEER: readonly (readonly [string, ...string[]])[] = [
  ['Tokyo', '東京', '東京都', 'とうきょう'],
  ['Osaka', '大阪', '大阪府'],
  ['Kyoto', '京都', '京都府'],
  ['Sapporo', '札幌'],
  ['Nagoya', '名古屋'],
  ['Yokohama', '横浜'],
  ['Kobe', '神戸'],
  ['Fukuoka', '福岡'],
  ['Hiroshima', '広島'],
  ['Sendai', '仙台'],
  ['Nara', '奈良'],
  ['Naha', '那覇'],
  ['Okinawa', '沖縄'],
  ['Hokkaido', '北海道'],
  ['Kanazawa', '金沢'],
  ['Nagasaki', '長崎'],
  ['Hakodate', '函館'],
  ['London', 'ロンドン'],
  ['Paris', 'パリ'],
  ['Berlin', 'ベルリン'],
  ['Munich', 'ミュンヘン'],
  ['Rome', 'ローマ'],
  ['Milan', 'ミラノ'],
  ['Madrid', 'マドリード', 'マドリッド'],
  ['Barcelona', 'バルセロナ'],
  ['Lisbon', 'リスボン'],
  ['Amsterdam', 'アムステルダム'],
  ['Vienna', 'ウィーン'],
  ['Zurich', 'チューリッヒ'],
  ['Stockholm', 'ストックホルム'],
  ['Moscow', 'モスクワ'],
  ['Istanbul', 'イスタンブール'],
  ['Cairo', 'カイロ'],
  ['Dubai', 'ドバイ'],
  ['Delhi', 'デリー'],
  ['Mumbai', 'ムンバイ'],
  ['Bangkok', 'バンコク'],
  ['Singapore', 'シンガポール'],
  ['Jakarta', 'ジャカルタ'],
  ['Hanoi', 'ハノイ'],
  ['Hong Kong', '香港'],
  ['Taipei', '台北'],
  ['Shanghai', '上海'],
  ['Beijing', '北京'],
  ['Seoul', 'ソウル'],
  ['Sydney', 'シドニー'],
  ['Melbourne', 'メルボルン'],
  ['Auckland', 'オークランド'],
  ['Honolulu', 'ホノルル'],
  ['New York', 'ニューヨーク', 'nyc', 'new york city'],
  ['San Francisco', 'サンフランシスコ'],
  ['Los Angeles', 'ロサンゼルス'],
  ['Seattle', 'シアトル'],
  ['Chicago', 'シカゴ'],
  ['Boston', 'ボストン'],
  ['Washington', 'ワシントン'],
  ['Toronto', 'トロント'],
  ['Vancouver', 'バンクーバー'],
  ['Mexico City', 'メキシコシティ'],
  ['Sao Paulo', 'サンパウロ', 'são paulo'],
]

const ENGLISH_BY_SPELLING: ReadonlyMap<string, string> = new Map(
  GAZETTEER.flatMap((names) => names.map((name) => [name.toLowerCase(), names[0]] as const)),
)
const JAPANESE_BY_ENGLISH: ReadonlyMap<string, string> = new Map(
  GAZETTEER.flatMap(([english, japanese]) =>
    japanese === undefined ? [] : [[english.toLowerCase(), japanese] as const],
  ),
)
const SPELLINGS = [...ENGLISH_BY_SPELLING.keys()].toSorted(
  (one, other) => other.length - one.length,
)
// Latin names must be whole words (Nara is not in "narrator"). Japanese has no spaces.
const KNOWN = new RegExp(
  [
    ...SPELLINGS.filter((name) => /^[a-zã ]+$/.test(name)).map(
      (name) => `(?<![a-z])${name}(?![a-z])`,
    ),
    ...SPELLINGS.filter((name) => !/^[a-zã ]+$/.test(name)),
  ].join('|'),
  'giu',
)
