import type { Conversation } from './reading/conversation.ts'
import { normalise } from './reading/language.ts'
import type { PlannedCall } from './schema.ts'
import { readOutcome } from './replies/outcomes.ts'
import { phrasesOf } from './replies/phrases.ts'
import { clip } from './replies/render.ts'
import { isRecord } from './schema.ts'
import type { Language } from '../demo-info.ts'

/** Returns whether a request is about the user's notes. */
export function isAboutNotes(request: string): boolean {
  const plain = normalise(request)
  return NOTES.test(plain) || ADDS.test(plain)
}

const NOTES =
  /\b(?:delete|remove|clean up|list|show|read|restore)\b.*\b(?:my|the|old|sample)\b.*\bnotes\b|(?:メモ|ノート)を/i
/** At the start only: a payment may have a note too. */
const ADDS =
  /^(?:please |(?:can|could) you )?(?:add|write|take|make|create|save) (?:me )?(?:a|another|one)(?: new)? note\b|(?:メモ|ノート)を(?:\S{0,6})(?:追加|書い|作っ|作成|取っ)/i
const DELETES = /\b(?:delete|remove|clean up)\b|削除|消し|消して/i
const RESTORES = /\brestore\b|復元|元に戻/i

/** The next action of the agent for notes. */
interface NotesStep {
  readonly text?: string
  readonly call?: PlannedCall
}

/** Returns what the agent for notes does next: it lists the notes, and deletes the old ones or adds one if the user wants this. */
export function continueNotes(
  { request, answered, isRequestNew }: Conversation,
  language: Language,
): NotesStep {
  const texts = TEXTS[language]
  const plain = normalise(request)
  if (isRequestNew && ADDS.test(plain)) return { call: toCall('add', { language }) }
  if (isRequestNew) return { call: toCall(RESTORES.test(plain) ? 'restore_samples' : 'list') }
  const last = answered.at(-1)
  if (!last) return {}
  const outcome = readOutcome(last.response, true)
  if (outcome.state !== 'answered')
    return { text: phrasesOf(language)[outcome.state](texts.action(last.name), outcome.reason) }
  const result = readResult(outcome.value)
  if (last.name === 'notes_delete') return { text: texts.deleted(toNumber(result['deleted'])) }
  if (last.name === 'notes_add')
    return {
      text:
        result['saved'] === true ? texts.saved(clip(String(result['title']), 80)) : texts.unsaved,
    }
  if (last.name === 'notes_restore_samples')
    return { text: texts.restored(toNumber(result['added'])) }
  const notes = readNotes(result['notes'])
  const old = notes.filter((note) => note.old)
  if (!DELETES.test(plain)) return { text: texts.listed(notes.map(({ title }) => title)) }
  if (old.length === 0) return { text: texts.noneOld }
  return {
    text: texts.found(notes.length, old.length),
    call: toCall('delete', { titles: old.map(({ title }) => title) }),
  }
}

function toCall(tool: string, args: PlannedCall['args'] = {}): PlannedCall {
  return { name: `notes_${tool}`, args }
}

/** Returns the data of an MCP result. */
function readResult(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { structuredContent } = value
  return isRecord(structuredContent) ? structuredContent : value
}

function readNotes(notes: unknown): { readonly title: string; readonly old: boolean }[] {
  const listed: unknown[] = Array.isArray(notes) ? notes : []
  return listed
    .filter(isRecord)
    .map(({ title, old }) => ({ title: clip(String(title), 80), old: old === true }))
}

function toNumber(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

const count = (notes: number): string => (notes === 1 ? '1 note' : `${String(notes)} notes`)

const TEXTS = {
  en: {
    action: (tool: string) =>
      tool === 'notes_delete' ? 'the deletion of the notes' : 'the request to the notebook',
    found: (all: number, old: number) =>
      `You have ${count(all)}. ${old === 1 ? 'One of them is' : `${String(old)} of them are`} from earlier years. `,
    deleted: (notes: number) => `I deleted ${count(notes)}.`,
    noneOld:
      'You have no notes from earlier years. Ask me to restore the sample notes to try it again.',
    saved: (title: string) => `I saved the note “${title}”.`,
    unsaved: 'You did not answer the notebook, so I saved no note.',
    restored: (notes: number) => `I added ${count(notes)}.`,
    listed: (titles: readonly string[]) =>
      titles.length === 0 ? 'You have no notes.' : `Your notes: ${titles.join(', ')}.`,
  },
  ja: {
    action: (tool: string) => (tool === 'notes_delete' ? 'メモの削除' : 'メモ帳への依頼'),
    found: (all: number, old: number) =>
      `メモは${String(all)}件あり、そのうち${String(old)}件は去年以前のものです。`,
    deleted: (notes: number) => `メモを${String(notes)}件削除しました。`,
    noneOld:
      '去年以前のメモはありません。もう一度試すには「見本のメモを復元して」と頼んでください。',
    saved: (title: string) => `メモ「${title}」を保存しました。`,
    unsaved: 'メモ帳の質問に回答がなかったため、メモは保存していません。',
    restored: (notes: number) => `メモを${String(notes)}件追加しました。`,
    listed: (titles: readonly string[]) =>
      titles.length === 0 ? 'メモはありません。' : `メモは${titles.join('、')}です。`,
  },
} as const satisfies Record<Language, unknown>
