import type { TimelineCall, TimelineWait } from '../../protocol/timeline.ts'

/** Says in one English sentence what a chat waits for, and what would continue it. */
export function describeWaits(waits: readonly TimelineWait[]): string {
  const [first, ...others] = waits
  if (!first) return 'Idle: waiting for a message.'
  const more = others.length === 0 ? '' : ` ${others.length} more in this chat.`
  return `${describeWait(first)}${more}`
}

export function describeWait(wait: TimelineWait): string {
  switch (wait.for) {
    case 'approval':
      return describeApproval(wait)
    case 'start':
      return `${describeCall(wait)} is approved and waits for a server to start it. It starts when a server with this agent is running and the chat is free.`
    case 'tool':
      return `Waiting for the tool ${describeCall(wait)}, which has been running since ${formatTime(wait.since)}.`
    case 'browser':
      return `Waiting for a page to run ${describeCall(wait)}. Open the chat in a browser.`
    case 'application':
      return `Waiting for the application to complete ${describeCall(wait)} with completeCall.`
    case 'model':
      return `Waiting for the model since ${formatTime(wait.since)}.`
  }
}

function describeApproval(wait: Extract<TimelineWait, { for: 'approval' }>): string {
  const { given, needed, deadline, approvedBy } = wait
  const approver = given > 0 ? `${ordinal(given + 1)} approver` : describeApprovers(wait)
  const votes =
    needed > 1
      ? `: ${given} of ${needed} ${given === 1 ? 'has' : 'have'} approved${given > 0 ? ` (${approvedBy.join(', ')})` : ''}`
      : ''
  const allowed = given > 0 ? ` Who may approve: ${describeApprovers(wait)}.` : ''
  return `Waiting for ${given > 0 ? 'a ' : ''}${approver} for ${describeCall(wait)}${votes}; expires at ${formatTime(deadline)}.${allowed}`
}

function describeApprovers({ approvers }: Extract<TimelineWait, { for: 'approval' }>): string {
  const { principals, roles } = approvers
  const names = [...principals, ...roles.map((role) => `the role ${role}`)]
  return names.length === 0 ? 'an approver' : names.join(' or ')
}

/** Returns the title of a call, or its tool, with its arguments. */
export function describeCall({
  title,
  toolName,
  args,
}: TimelineCall & { readonly title?: string | undefined }): string {
  const values = Object.entries(args).map(
    ([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const shown = values.length === 0 ? '' : ` (${shortenText(values.join(', '), 120)})`
  return `${title ?? toolName}${shown}`
}

function ordinal(number: number): string {
  return ['first', 'second', 'third', 'fourth', 'fifth'][number - 1] ?? `${number}th`
}

/** An English sentence for logs and terminals uses UTC, as log entries do. */
function formatTime(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** The maximum length of a text in shortened arguments, and of all of them as JSON. */
const MAX_TEXT = 200
const MAX_JSON = 2_000
const MAX_ITEMS = 20
const MAX_DEPTH = 4

/** Returns the arguments of a call with long texts and lists cut, so that a timeline stays small. */
export function shortenArgs(args: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const short = shortenRecord(args, 0)
  if (JSON.stringify(short).length <= MAX_JSON) return short
  return { '…': `${JSON.stringify(short).slice(0, MAX_JSON)}…` }
}

/** Cuts a text and marks the cut. */
export function shortenText(text: string, length = MAX_TEXT): string {
  return text.length <= length ? text : `${text.slice(0, length).toWellFormed()}…`
}

function shortenRecord(record: object, depth: number): Record<string, unknown> {
  const entries = Object.entries(record).slice(0, MAX_ITEMS)
  // `fromEntries` defines properties, so that `__proto__` is a key like any other.
  return Object.fromEntries(
    entries.map(([key, value]: [string, unknown]) => [shortenText(key), shorten(value, depth + 1)]),
  )
}

function shorten(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return shortenText(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) return '…'
  if (Array.isArray(value))
    return value.slice(0, MAX_ITEMS).map((item: unknown) => shorten(item, depth + 1))
  return shortenRecord(value, depth)
}
