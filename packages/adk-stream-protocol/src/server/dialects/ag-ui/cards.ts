import { z } from 'zod'

import { isRecord } from '../../../protocol/guards.ts'
import type { DataParts } from '../../../protocol/message.ts'
import type { Interrupt, OpenInterrupt, RunEvent } from './events.ts'
import type { ResumeEntry, RunInput } from './run-input.ts'

/**
 * Cards of A2UI 0.9, which a stock CopilotKit page shows without code of its own. A page that chooses them gets no interrupts: a click
 * carries no `resume`, and the client would reject messages while an interrupt is open.
 */

/** Returns what a person can answer as cards with buttons, or forms. */
export function toCards(interrupts: readonly OpenInterrupt[], labels: CardLabels): RunEvent[] {
  return interrupts.map((open) =>
    open.interrupt.reason === 'input_required' ? toForm(open, labels) : toButtons(open, labels),
  )
}

/** Returns the card of an approval or a question that has ended. It replaces the one with the buttons. */
export function toEndedCard(
  { approvalId, kind, state }: DataParts['approval'],
  toolName: string | undefined,
  labels: CardLabels,
): RunEvent[] {
  if (state === 'requested') return []
  const ended = (kind === undefined ? labels.states : labels.answers)[state]
  const text = `${toolName ?? labels.call}: ${ended}`
  return [toSurface(approvalId, [{ id: 'root', component: 'Text', text }])]
}

/** A button that opens an address in a new tab, without a request to the server. */
function toOpen(link: OpenInterrupt['link'], labels: CardLabels): object[] {
  if (!link) return []
  const functionCall = { call: 'openUrl', args: { url: link.url }, returnType: 'void' }
  return button('open', labels.open(link.host), { functionCall })
}

/** A call with all its arguments, and what its preview says. The click names the preview, so that nobody approves another one. */
function toButtons(
  { interrupt, words, preview, link }: OpenInterrupt,
  labels: CardLabels,
): RunEvent {
  const { id, reason, message } = interrupt
  const isApproval = reason === 'tool_call' || reason === 'adk:page_tool'
  const context = { approvalId: id }
  const approve = { name: APPROVE, context: { ...context, preview: preview?.digest ?? '' } }
  const yes = isApproval
    ? button('approve', labels.approve, { event: approve })
    : button('approve', labels.done, { event: { name: ANSWER, context } })
  const no = isApproval
    ? button('deny', labels.deny, { event: { name: DENY, context } })
    : button('deny', labels.decline, { event: { name: DECLINE, context } })
  const isBlocked = preview?.blocked !== undefined
  const buttons = [...toOpen(link, labels), ...(isBlocked ? [] : yes), ...no]
  const children = [...(link ? ['open'] : []), ...(isBlocked ? [] : ['approve']), 'deny']
  const details = isApproval ? [...words.preview, ...words.args] : []
  const rows = details.map((text, index) => ({ id: `detail-${index}`, component: 'Text', text }))
  return toSurface(id, [
    ...frame(message, [...rows.map((row) => row.id), 'buttons']),
    ...rows,
    { id: 'buttons', component: 'Row', children },
    ...buttons,
  ])
}

type EndedState = Exclude<DataParts['approval']['state'], 'requested'>
type EndedStates = Readonly<Record<EndedState, string>>

/** The words of cards. */
export interface CardLabels {
  readonly approve: string
  readonly deny: string
  /** A sign-in is done, or a link was opened. */
  readonly done: string
  readonly decline: string
  /** Opens an address of a host. */
  readonly open: (host: string) => string
  readonly send: string
  /** A call whose tool is not known. */
  readonly call: string
  /** What has become of an approval. */
  readonly states: EndedStates
  /** What has become of a question. */
  readonly answers: EndedStates
}

const ENDED = { expired: 'expired', cancelled: 'cancelled', unknown: 'outcome unknown' }

const ENGLISH: CardLabels = {
  approve: 'Approve',
  deny: 'Deny',
  done: 'Continue',
  decline: 'Decline',
  open: (host) => `Open ${host}`,
  send: 'Send',
  call: 'Call',
  states: { ...ENDED, approved: 'approved', denied: 'denied' },
  answers: { ...ENDED, approved: 'answered', denied: 'declined' },
}

const ENDED_JAPANESE = { expired: '期限切れ', cancelled: '取り消し', unknown: '結果不明' }

const JAPANESE: CardLabels = {
  approve: '承認',
  deny: '拒否',
  done: '続ける',
  decline: '回答しない',
  open: (host) => `${host}を開く`,
  send: '送信',
  call: '呼び出し',
  states: { ...ENDED_JAPANESE, approved: '承認済み', denied: '拒否済み' },
  answers: { ...ENDED_JAPANESE, approved: '回答済み', denied: '回答なし' },
}

/** Returns the words for the header `accept-language`. */
export function toCardLabels(language = ''): CardLabels {
  return /^ja\b/i.test(language) ? JAPANESE : ENGLISH
}

/** A field of a form. The kind says how its value is read, because a text field has only text. */
interface Field {
  /** Empty if the value is the whole answer. */
  readonly name: string
  readonly kind: 'text' | 'number' | 'flag' | 'choice'
  readonly label: string
  readonly options: readonly string[]
}

function toForm({ interrupt, link }: OpenInterrupt, labels: CardLabels): RunEvent {
  const { id, message, responseSchema } = interrupt
  const fields = toFields(responseSchema)
  const answers = fields.map(({ kind, name }, index) => [`${kind}.${name}`, pathOf(index)] as const)
  const context = { approvalId: id, ...Object.fromEntries(answers) }
  const components = [
    ...frame(message, [...fields.map((_field, index) => `field-${index}`), 'buttons']),
    ...fields.map(toInput),
    { id: 'buttons', component: 'Row', children: [...(link ? ['open'] : []), 'send', 'decline'] },
    ...toOpen(link, labels),
    ...button('send', labels.send, { event: { name: ANSWER, context } }),
    ...button('decline', labels.decline, { event: { name: DECLINE, context: { approvalId: id } } }),
  ]
  const value = fields.map(({ kind }, index) => [`f${index}`, EMPTY[kind]] as const)
  return toSurface(id, components, Object.fromEntries(value))
}

const EMPTY = { text: '', number: '', flag: false, choice: [] } as const

function pathOf(index: number): { readonly path: string } {
  return { path: `/f${index}` }
}

function toInput({ kind, label, options }: Field, index: number): object {
  const common = { id: `field-${index}`, label, value: pathOf(index) }
  if (kind === 'flag') return { ...common, component: 'CheckBox' }
  if (kind !== 'choice')
    return { ...common, component: 'TextField', variant: kind === 'number' ? kind : 'shortText' }
  return {
    ...common,
    component: 'ChoicePicker',
    variant: 'mutuallyExclusive',
    options: options.map((value) => ({ label: value, value })),
  }
}

const Property = z.looseObject({
  type: z.unknown(),
  title: z.string().optional(),
  enum: z.array(z.string()).optional(),
})

function toFields(schema: Interrupt['responseSchema']): Field[] {
  const properties = schema?.['properties']
  return isRecord(properties)
    ? Object.entries(properties).map(([name, property]) => toField(name, property))
    : [toField('', schema)]
}

function toField(name: string, property: unknown): Field {
  const { type, title = name, enum: options = [] } = Property.safeParse(property).data ?? {}
  const plain = type === 'boolean' ? 'flag' : 'text'
  const typed = type === 'integer' || type === 'number' ? 'number' : plain
  return { name, label: title, options, kind: options.length > 0 ? 'choice' : typed }
}

/** An event for the server, or a function that the page calls. */
type Action = { readonly event: object } | { readonly functionCall: object }

function frame(message: string, children: readonly string[]): object[] {
  return [
    { id: 'root', component: 'Card', child: 'all' },
    { id: 'all', component: 'Column', children: ['message', ...children] },
    { id: 'message', component: 'Text', text: message, variant: 'h4' },
  ]
}

function button(id: string, label: string, action: Action): object[] {
  return [
    { id, component: 'Button', child: `${id}-label`, action },
    { id: `${id}-label`, component: 'Text', text: label },
  ]
}

const VERSION = 'v0.9'
const CATALOG = 'https://a2ui.org/specification/v0_9/basic_catalog.json'

function toSurface(
  approvalId: string,
  components: readonly object[],
  model?: Readonly<Record<string, unknown>>,
): RunEvent {
  const surfaceId = `card.${approvalId}`
  const operations = [
    { version: VERSION, createSurface: { surfaceId, catalogId: CATALOG } },
    { version: VERSION, updateComponents: { surfaceId, components } },
    ...(model
      ? [{ version: VERSION, updateDataModel: { surfaceId, path: '/', value: model } }]
      : []),
  ]
  return {
    type: 'ACTIVITY_SNAPSHOT',
    messageId: surfaceId,
    activityType: 'a2ui-surface',
    content: { a2ui_operations: operations },
    replace: true,
  }
}

const APPROVE = 'adk.approve'
const DENY = 'adk.deny'
const ANSWER = 'adk.answer'
const DECLINE = 'adk.decline'

const Click = z.object({
  a2uiAction: z.object({
    userAction: z.object({
      name: z.enum([APPROVE, DENY, ANSWER, DECLINE]),
      context: z.looseObject({ approvalId: z.string().min(1).max(256) }),
    }),
  }),
})

/** Returns the input with the answer that a click on a card carries. */
export function readClick(input: RunInput): RunInput {
  const { userAction } = Click.safeParse(input.forwardedProps).data?.a2uiAction ?? {}
  if (!userAction) return input
  const { approvalId: interruptId, ...values } = userAction.context
  const entry: ResumeEntry =
    userAction.name === DECLINE
      ? { interruptId, status: 'cancelled' }
      : { interruptId, status: 'resolved', payload: toPayload(userAction.name, values) }
  return { ...input, resume: [entry] }
}

/** The ledger checks the answer, so a value that cannot be read is passed on as it is. An empty field has no value. */
function toPayload(name: string, values: Readonly<Record<string, unknown>>): unknown {
  if (name !== ANSWER) {
    const { preview } = values
    const isShown = name === APPROVE && preview !== '' && preview !== undefined
    return { approved: name === APPROVE, ...(isShown && { preview }) }
  }
  const fields = Object.entries(values)
  // Only a sign-in or a link has no field: to continue is to say that it is done.
  if (fields.length === 0) return undefined
  const read = fields.flatMap(([key, value]) => readField(key, value))
  const whole = read.find(([field]) => field === '')
  return whole ? whole[1] : Object.fromEntries(read)
}

function readField(key: string, value: unknown): [string, unknown][] {
  const [, kind, name = ''] = /^(text|number|flag|choice)\.(.*)$/s.exec(key) ?? []
  const given: unknown = Array.isArray(value) ? value[0] : value
  if (kind === undefined || given === '' || given === undefined) return []
  const isNumber = kind === 'number' && Number.isFinite(Number(given))
  return [[name, isNumber ? Number(given) : given]]
}
