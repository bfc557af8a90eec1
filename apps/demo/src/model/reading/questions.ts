import { normalise } from './language.ts'
import { parseNumber, parseWords } from './numbers.ts'
import type { Language } from '../../demo-info.ts'

/** Returns the part of a request that the accountant is to do, or undefined. */
export function readDelegation(request: string): string | undefined {
  const english = /\baccountant\b[,:]?\s+(?:to\s+)?(.+)$/is.exec(request)
  const japanese = /経理(?:担当)?(?:の人)?(?:に|へ)[、,\s]*(.+?)(?:する)?(?:ように|よう)[^]*$/.exec(
    request,
  )
  const direct = /経理(?:担当)?(?:の人)?(?:に|へ)(?:頼んで|お願いして|依頼して)[、,\s]*(.+)$/s.exec(
    request,
  )
  const task = english?.[1] ?? direct?.[1] ?? (japanese?.[1] && `${japanese[1]}してください`)
  return task?.trim()
}

/** Returns whether the user wants to reserve a table, for which the model asks with a form. */
export function wantsTable(request: string): boolean {
  return TABLE.test(normalise(request))
}

const TABLE =
  /\b(?:book|reserve)\b.*\btable\b|\btable\b.*\breservation\b|(?:レストラン|テーブル|席).*予約/i

/** Returns whether the user asks for the events of their calendar. */
export function wantsCalendar(request: string): boolean {
  return CALENDAR.test(normalise(request))
}

const CALENDAR =
  /\b(?:show|read|check|open|list|what is (?:in|on)|what's (?:in|on))\b.*\b(?:calendar|schedule|appointments|agenda)\b|(?:カレンダー|予定|スケジュール)(?:を|は|が)/i

/** Returns the number of guests that a request names, or undefined. */
function readGuests(request: string): number | undefined {
  const written =
    /\bfor\s+(\d+|[a-z]+)\b/.exec(request.toLowerCase())?.[1] ??
    /(\d+|[一二三四五六七八九十]+)[人名]/.exec(request)?.[1]
  const guests = written === undefined ? undefined : (parseNumber(written) ?? parseWords([written]))
  return guests !== undefined && guests >= 1 && guests <= MAX_GUESTS ? guests : undefined
}

const MAX_GUESTS = 12

/** Returns the question for the details of a table, with the schema of its form. It does not ask for what the request has said. */
export function createTableQuestion(request: string, language: Language): Record<string, unknown> {
  const known = readGuests(normalise(request))
  const [message, guests, date, seating, inside, outside, wishes] = TEXTS[language]
  return {
    message,
    response_schema: {
      type: 'object',
      properties: {
        guests: {
          type: 'integer',
          title: guests,
          minimum: 1,
          maximum: MAX_GUESTS,
          ...(known !== undefined && { default: known }),
        },
        date: { type: 'string', title: date, format: 'date' },
        seating: { type: 'string', title: seating, enum: [inside, outside] },
        wishes: { type: 'string', title: wishes, maxLength: 200 },
      },
      required: ['guests', 'date', 'seating'],
    },
  }
}

const TEXTS = {
  en: ['Which table would you like?', 'Guests', 'Date', 'Seating', 'Inside', 'Outside', 'Wishes'],
  ja: ['どのようなお席をご希望ですか？', '人数', '日付', '席', '店内', 'テラス', 'ご要望'],
} as const satisfies Record<Language, readonly string[]>
