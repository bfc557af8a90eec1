import { parseNumber, parseWords } from './numbers.ts'

/** A request about the background music. */
export type MusicIntent =
  | { readonly want: 'track'; readonly track: number }
  | { readonly want: 'next' }
  | { readonly want: 'stop' }
  | { readonly want: 'some' }

/** Reads a request about the background music. Returns undefined if there is none. */
export function readMusicIntent(text: string): MusicIntent | undefined {
  if (!MUSIC.test(text)) return undefined
  const track = readTrack(text)
  if (track !== undefined) return { want: 'track', track }
  if (STOP.test(text)) return { want: 'stop' }
  if (NEXT.test(text)) return { want: 'next' }
  return CHANGE.test(text) ? { want: 'some' } : undefined
}

const MUSIC = /\b(?:track|bgm|music|song|tune)s?\b|bgm|トラック|音楽|曲/i
const CHANGE = /\b(?:change|switch|play|put on|start|set)\b|変え|変更|切り替え|流し|かけて|再生/i
const STOP = /\b(?:stop|pause|mute|turn off|silence)\b|止め|停止|消して|ミュート/i
const NEXT = /\b(?:next|other|another|different|skip)\b|次の|別の|ほかの|他の|もう一つ/i

// "track 2", "track no. two", 「トラック2」「2番の曲」「曲を2に」, "the second song"
const NUMBER_BEHIND =
  /(?:track|song|bgm|music|トラック|曲を?|音楽を?)\s?(?:to|no\.?|number|#|を)?\s?(-?\d{1,6}|[一二三四五六七八九十]|(?:one|two|three|four|five)\b)/gi
const NUMBER_AHEAD = /(\d{1,6}|[一二三四五六七八九十])\s?(?:番目?|曲目|つ目)/
const ORDINALS = ['first', 'second', 'third', 'fourth', 'fifth']
const ORDINAL = /\b(first|second|third|fourth|fifth) (?:track|song|tune|piece)/i

function readTrack(text: string): number | undefined {
  for (const { 1: written = '' } of text.matchAll(NUMBER_BEHIND)) {
    const track = toNumber(written.toLowerCase())
    if (track !== undefined) return track
  }
  const ahead = NUMBER_AHEAD.exec(text)?.[1]
  if (ahead !== undefined) return toNumber(ahead)
  const ordinal = ORDINALS.indexOf(ORDINAL.exec(text)?.[1]?.toLowerCase() ?? '')
  return ordinal === -1 ? undefined : ordinal + 1
}

function toNumber(written: string): number | undefined {
  if (written.startsWith('-')) return -Number(written.slice(1))
  return parseNumber(written) ?? parseWords([written])
}
