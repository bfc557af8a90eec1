import { clip } from './render.ts'
import { isRecord } from '../schema.ts'

/** The outcome of a call, according to its result. */
export type Outcome =
  | { readonly state: 'answered'; readonly value: Readonly<Record<string, unknown>> }
  | {
      readonly state: 'failed' | 'denied' | 'pending' | 'expired' | 'cancelled' | 'unknown'
      readonly reason?: string
    }

/**
 * Reads the outcome of a call. A result without a sign of failure is a success.
 *
 * The `status` of an unknown tool may be data (an order is `pending`). It is the outcome only if the result has nothing else,
 * or if the tool is known.
 */
export function readOutcome(
  response: Readonly<Record<string, unknown>>,
  isKnownTool: boolean,
): Outcome {
  const value = unwrap(response)
  const problem = textOf(value['error']) ?? textOf(value['errorText'])
  const aboutCall = isKnownTool || Object.keys(value).every((key) => CALL_WORDS.has(key))
  const state =
    (aboutCall ? stateOf(value) : undefined) ??
    (problem === undefined ? undefined : stateOfProblem(problem))
  if (state !== undefined) return withReason(state, reasonOf(value, problem))
  const failed = problem !== undefined || isSet(value['error']) || saysNo(value)
  return failed ? withReason('failed', reasonOf(value, problem)) : { state: 'answered', value }
}

/** ADK wraps plain values as `{ result }`, and some tools nest an object there. The AI SDK sends `{ name, content }`. */
function unwrap(response: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const inner = innerOf(response)
  if (isRecord(inner)) return inner
  if (inner === DENIED_BY_AI_SDK) return { denied: true }
  if (typeof inner !== 'string' || !inner.startsWith('{')) return response
  try {
    const parsed: unknown = JSON.parse(inner)
    return isRecord(parsed) ? parsed : response
  } catch {
    // Not JSON: shown as text.
    return response
  }
}

function innerOf(response: Readonly<Record<string, unknown>>): unknown {
  const keys = Object.keys(response)
  if (keys.length === 1) return response['result'] ?? response['output']
  return keys.toSorted().join(' ') === 'content name' ? response['content'] : undefined
}

const DENIED_BY_AI_SDK = 'Tool call execution denied.'

const CALL_WORDS = new Set(
  'status state outcome reason message user_message detail error errorText note hint success ok denied pending expired cancelled approved confirmed approvalId toolCallId'.split(
    ' ',
  ),
)

type EndState = Exclude<Outcome['state'], 'answered'>

const STATES: ReadonlyMap<string, EndState> = new Map<string, EndState>([
  ...each('denied', 'denied rejected declined refused output-denied'),
  ...each(
    'pending',
    'pending requested waiting awaiting-approval approval-requested running executing in-progress in_progress',
  ),
  ...each('expired', 'expired timed-out timed_out timeout'),
  ...each('cancelled', 'cancelled canceled aborted interrupted'),
  ...each('unknown', 'unknown indeterminate'),
  ...each('failed', 'failed failure error output-error'),
])

function each(state: EndState, words: string): [string, EndState][] {
  return words.split(' ').map((word) => [word, state])
}

function stateOf(value: Readonly<Record<string, unknown>>): EndState | undefined {
  for (const key of ['status', 'state', 'outcome']) {
    const word = value[key]
    const state = typeof word === 'string' ? STATES.get(word.toLowerCase()) : undefined
    if (state !== undefined) return state
  }
  for (const state of ['denied', 'pending', 'expired', 'cancelled'] as const) {
    if (value[state] === true) return state
  }
  return value['approved'] === false || value['confirmed'] === false ? 'denied' : undefined
}

// Messages of ADK and of tools that correspond to a status.
const PROBLEMS: readonly (readonly [RegExp, EndState])[] = [
  [/requires confirmation|waiting for (?:an? )?approval|approval is pending/i, 'pending'],
  [/\b(?:rejected|denied|declined)\b|拒否|却下/i, 'denied'],
  [/\bexpired\b|approval (?:request )?timed out|期限切れ/i, 'expired'],
  [/\bcancell?ed\b|取り消され|キャンセル/i, 'cancelled'],
  [/\b(?:outcome|result|state) (?:is )?unknown\b|unknown whether/i, 'unknown'],
]

function stateOfProblem(problem: string): EndState | undefined {
  return PROBLEMS.find(([words]) => words.test(problem))?.[1]
}

function saysNo(value: Readonly<Record<string, unknown>>): boolean {
  return value['success'] === false || value['ok'] === false
}

const LONGEST_REASON = 300
// Messages of ADK and the bridge for a denied or pending call. They are not a person's reason.
const NO_REASON =
  /^(?:This tool call (?:is rejected|requires confirmation)|The person denied this call)/

function reasonOf(
  value: Readonly<Record<string, unknown>>,
  problem: string | undefined,
): string | undefined {
  const reason = ['reason', 'user_message', 'message', 'detail']
    .map((key) => textOf(value[key]))
    .find(Boolean)
  const said = reason ?? problem
  return said === undefined || NO_REASON.test(said) ? undefined : clip(said, LONGEST_REASON)
}

function withReason(state: EndState, reason: string | undefined): Outcome {
  return reason === undefined ? { state } : { state, reason }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value.trim() === '' ? undefined : value.trim()
  return isRecord(value) ? textOf(value['message']) : undefined
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== false && value !== ''
}
