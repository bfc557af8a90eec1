import type { TurnKind } from '../../chaos/support/history.ts'
import type { SentKind } from './sync-program.ts'

/** The name of the gate at which a browser tool waits. */
export function toolGate(id: number): string {
  return `tool-${id}`
}

/** The script of a message, the text of its reply, and the gates at which the model and its browser tool wait. */
export function writeScript(
  kind: SentKind,
  id: number,
): {
  readonly script: string
  readonly expected: string
  readonly turnKind: TurnKind
  readonly gates: readonly string[]
} {
  const [first, second] = [`${id}.a`, `${id}.b`]
  const say = (part: number): string => `[[say ${id}.${part};]]`
  switch (kind) {
    case 'talk':
      return {
        script: `${say(1)}[[wait ${first}]]${say(2)}[[wait ${second}]]${say(3)}`,
        expected: `${id}.1;${id}.2;${id}.3;`,
        turnKind: 'talk',
        gates: [first, second],
      }
    case 'pay':
      return {
        script: `${say(1)}${pay('call', id)}[[then]]${say(2)}[[wait ${first}]]${say(3)}`,
        expected: `${id}.1;${id}.2;${id}.3;`,
        turnKind: 'pay',
        gates: [first],
      }
    case 'pays':
      return {
        script: `${pay('call', id)}[[wait ${first}]]${pay('call-separate', id + 0.5)}[[then]]${say(1)}[[wait ${second}]]${say(2)}`,
        expected: `${id}.1;${id}.2;`,
        turnKind: 'pay',
        gates: [first, second],
      }
    case 'locate':
    case 'select':
      return {
        script: `[[call ${kind} {"id": ${id}}]]`,
        expected: '',
        turnKind: kind,
        gates: [toolGate(id)],
      }
    case 'ask': {
      const response_schema = {
        type: 'object',
        properties: { nights: { type: 'integer' } },
        required: ['nights'],
      }
      const question = { message: `How many nights, ${id}?`, response_schema }
      return {
        script: `[[call adk_request_input ${JSON.stringify(question)}]]`,
        expected: '',
        turnKind: 'ask',
        gates: [],
      }
    }
  }
}

function pay(directive: string, amount: number): string {
  return `[[${directive} pay ${JSON.stringify({ to: '花子', amount })}]]`
}
