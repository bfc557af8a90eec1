import { BasePlugin, type LlmRequest } from '@google/adk'
import { expect, test } from 'vitest'

import { defer, type Deferred } from '../../src/shared/async.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { makeFolder } from './support/folder.ts'
import { openPaymentServer } from './support/payment-server.ts'
import { Person, readEffects } from './support/person.ts'

/** A plugin of the application. Its first callback of the given kind after a payment waits. */
class SlowAudit extends BasePlugin {
  readonly #kind: 'tool' | 'model'
  readonly started: Deferred<void> = defer()
  readonly end: Deferred<void> = defer()

  constructor(kind: 'tool' | 'model') {
    super('audit')
    this.#kind = kind
  }

  override async afterToolCallback({ result }: { result: Record<string, unknown> }) {
    return this.#waitIfPaid('tool', result)
  }

  override async beforeModelCallback({ llmRequest }: { llmRequest: LlmRequest }) {
    return this.#waitIfPaid('model', llmRequest.contents)
  }

  async #waitIfPaid(kind: 'tool' | 'model', content: unknown): Promise<undefined> {
    if (kind !== this.#kind || !JSON.stringify(content).includes('"paid":50')) return
    this.started.resolve()
    await this.end.promise
  }
}

const PAY = '[[call pay {"to": "花子", "amount": 50}]]'
const INSIDE = JSON.stringify({ request: `${PAY} [[then]] [[say Paid inside.]]` })

test.for([
  { kind: 'tool', agent: 'the assistant', script: PAY },
  { kind: 'tool', agent: 'an agent used as a tool', script: `[[call desk ${INSIDE}]]` },
  { kind: 'model', agent: 'an agent used as a tool', script: `[[call desk ${INSIDE}]]` },
] as const)(
  '[AP802] a $kind callback of $agent that hangs after a call does not hide its outcome when the turn is stopped',
  async ({ kind, script }) => {
    await using folder = await makeFolder()
    await using store = await openSqliteStore({ path: folder.database })
    const audit = new SlowAudit(kind)
    await using server = await openPaymentServer({
      store,
      effects: folder.effects,
      plugins: [audit],
      // A sweep would report an outcome that the stop has left.
      limits: { leaseMs: 100, sweepMs: 20 },
    })
    const person = new Person(server.url)
    const { approvalId, toolCallId } = await person.ask(`${script} [[then]] [[say Paid.]]`)
    expect((await person.decide(approvalId, { approved: true })).status).toBe(200)
    await audit.started.promise
    expect((await person.post('/chats/chat-1/stop', {})).status).toBe(204)
    const findPayment = async () =>
      toolParts((await person.messages())[1]).filter((part) => part.toolCallId === toolCallId)
    const paid = [{ state: 'output-available', output: { paid: 50 } }]
    expect(await findPayment()).toMatchObject(paid)
    audit.end.resolve()
    await person.say('[[say Next.]]')
    const messages = await person.messages()
    expect(messages).toHaveLength(4)
    expect(textOf(messages.at(-1))).toBe('Next.')
    expect(await findPayment()).toMatchObject(paid)
    expect(readEffects(folder.effects)).toHaveLength(1)
    expect(server.errors).toEqual([])
  },
)
