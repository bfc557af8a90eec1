import { type AuthConfig, LlmAgent, MCPToolset, requestInputTool } from '@google/adk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { tool } from '../support/agents.ts'
import { musicTool } from '../support/locating.ts'
import type { McpFixture } from '../support/mcp-servers.ts'
import { serveHttp } from '../support/mcp-servers.ts'
import { AG_UI_VERSIONS, AgUiClient } from './support/ag-ui-client.ts'

let testBridge: TestBridge

beforeAll(async () => {
  testBridge = await TestBridge.open({
    isLive: false,
    tools: (wallet) => [paymentTool(wallet), requestInputTool, musicTool()],
  })
})

afterAll(() => testBridge[Symbol.asyncDispose]())

interface Component {
  readonly id: string
  readonly component: string
  readonly text?: string
  readonly action?: { readonly event?: Action; readonly functionCall?: object }
}

interface Action {
  readonly name: string
  readonly context: Readonly<Record<string, unknown>>
}

/** The components of each card that the client shows, by their ids. */
function cardsOf({ messages }: AgUiClient): Map<string, Component>[] {
  return messages.flatMap(({ activityType, content }) => {
    if (activityType !== 'a2ui-surface') return []
    const { a2ui_operations: operations } = content as {
      a2ui_operations: { updateComponents?: { components: Component[] } }[]
    }
    const components = operations.flatMap((each) => each.updateComponents?.components ?? [])
    return [new Map(components.map((component) => [component.id, component]))]
  })
}

const textsOf = (client: AgUiClient): string[] =>
  cardsOf(client).map((card) => card.get('root')?.text ?? card.get('message')?.text ?? '')

/** Clicks a button as CopilotKit does, with the values that the person has entered instead of their paths. */
async function click(
  client: AgUiClient,
  index: number,
  button: string,
  entered: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const event = cardsOf(client)[index]?.get(button)?.action?.event
  const context = { ...event?.context, ...entered }
  const userAction = { name: event?.name, surfaceId: 'card', context }
  await client.run({ forwardedProps: { a2uiAction: { userAction } } })
}

const SCHEMA =
  '{"type":"object","properties":{"nights":{"type":"integer"},"view":{"type":"string","enum":["sea","town"]},"late":{"type":"boolean"},"note":{"type":"string"}},"required":["nights"]}'
const ask = (schema: string): string =>
  `[[call adk_request_input {"message":"How many?","response_schema":${schema}}]][[then]][[say Booked.]]`

describe.each(AG_UI_VERSIONS)('$name', (version) => {
  const it = takeTurns({ group: AG_UI_VERSIONS.indexOf(version), groups: AG_UI_VERSIONS.length })
  const open = (): AgUiClient =>
    new AgUiClient(version, { url: testBridge.url, path: '/ag-ui/cards' })

  it('[AG1540] approvals are cards, decided one by one, and the page can write meanwhile', async () => {
    const client = open()
    const { wallet } = testBridge
    const before = wallet.payments.length
    await client.say(`${callPayment(1, 'A')}${callPayment(2, 'B')}[[then]][[say Both.]]`)
    expect(client.pending).toEqual([])
    expect(textsOf(client)).toEqual([
      expect.stringContaining('"A"') as string,
      expect.stringContaining('"B"') as string,
    ])
    expect((await client.reload()).byId).toEqual(client.byId)
    await client.say('[[say Meanwhile.]]')
    expect(client.text).toEqual(['Meanwhile.'])
    await click(client, 1, 'deny')
    // An open card moves to the end.
    expect(textsOf(client)).toEqual([
      'process_payment: denied',
      expect.stringContaining('"A"') as string,
    ])
    expect(wallet.payments.length).toBe(before)
    await click(client, 1, 'approve')
    expect(new Set(textsOf(client))).toEqual(
      new Set(['process_payment: approved', 'process_payment: denied']),
    )
    expect(wallet.payments.slice(before)).toEqual([{ amount: 1, recipient: 'A' }])
    expect(client.text).toContain('Both.')
    expect((await client.reload()).byId).toEqual(client.byId)
    // A second click on a card that has ended changes nothing.
    await client.run({
      forwardedProps: {
        a2uiAction: { userAction: { name: 'adk.approve', context: { approvalId: 'none' } } },
      },
    })
    expect(client.refused).toEqual(['unknown-approval'])
    expect(wallet.payments.length).toBe(before + 1)
  })

  it('[AG1541] a question is a form, whose values have the types of the schema', async () => {
    const client = open()
    await client.say(ask(SCHEMA))
    const [form] = cardsOf(client)
    const fields = ['field-0', 'field-1', 'field-2', 'field-3']
    expect(fields.map((id) => form?.get(id)?.component)).toEqual([
      'TextField',
      'ChoicePicker',
      'CheckBox',
      'TextField',
    ])
    const others = { 'choice.view': ['sea'], 'flag.late': true, 'text.note': '' }
    await click(client, 0, 'send', { ...others, 'number.nights': 'two' })
    expect(client.refused).toEqual(['invalid-answer'])
    expect(textsOf(client)).toEqual([expect.stringContaining('How many? (') as string])
    await click(client, 0, 'send', { ...others, 'number.nights': '2' })
    expect(client.results).toEqual([{ nights: 2, view: 'sea', late: true }])
    expect(client.text).toEqual(['Booked.'])
    expect(textsOf(client)).toEqual(['adk_request_input: answered'])
  })

  it('[AG1541] a question for one value has one field, and can be declined', async () => {
    const client = open()
    await client.say(ask('{"type":"integer"}'))
    await click(client, 0, 'send', { 'number.': '3' })
    expect(client.results).toEqual([3])
    await client.say(ask('{"type":"integer"}'))
    await click(client, 1, 'decline')
    expect(textsOf(client)[1]).toBe('adk_request_input: declined')
    expect(client.text).toEqual(['Booked.', 'Booked.'])
  })

  it('[AG1386] a tool of the page is shown when no card waits', async () => {
    const client = open()
    await client.say(`${callPayment(1, 'C')}[[call change_bgm {"track":3}]][[then]][[say Both.]]`)
    expect(client.calls).toEqual(['process_payment'])
    await click(client, 0, 'approve')
    expect(client.calls).toEqual(['process_payment', 'change_bgm'])
  })
})

test('[AG1540] a CopilotKit page learns that there are cards, and only there', async () => {
  expect([await hasCards('/ag-ui/cards'), await hasCards('/ag-ui')]).toEqual([true, false])
})

async function hasCards(path: string): Promise<boolean> {
  const headers = { 'x-api-key': 'hanako' }
  const response = await fetch(`${testBridge.url}${path}/info`, { headers })
  return ((await response.json()) as { a2uiEnabled: boolean }).a2uiEnabled
}

/** The texts of all cards. A component without one counts as undefined. */
const shown = (client: AgUiClient): (string | undefined)[] =>
  cardsOf(client).flatMap((card) => [...card.values()].map(({ text }) => text))

describe('with a preview', () => {
  let fee = 1
  let previewed: TestBridge

  beforeAll(async () => {
    previewed = await TestBridge.open({
      isLive: false,
      approvals: {
        process_payment: {
          title: 'Payment',
          requirePreview: true,
          preview: ({ amount }) => ({
            headline: `Send $${String(amount)}`,
            lines: [{ label: 'Fee', value: `$${fee}` }],
            ...(amount === 9 && { blocked: 'Nine is too much.' }),
          }),
        },
      },
    })
  })

  afterAll(() => previewed[Symbol.asyncDispose]())

  const [version] = AG_UI_VERSIONS
  const open = (headers: Readonly<Record<string, string>> = {}): AgUiClient => {
    if (!version) throw new Error('There is no client.')
    return new AgUiClient(version, { url: previewed.url, path: '/ag-ui/cards', headers })
  }
  test('[AG1542] a card shows the preview and every argument as it is, and its click names the preview', async () => {
    fee = 1
    const client = open()
    await client.say(`${callPayment(5, 'Bob\u202E\nok')}[[then]][[say Paid.]]`)
    expect(shown(client)).toEqual([
      undefined,
      undefined,
      'Send $5\nAllow process_payment(amount: 5, recipient: "Bob⟨U+202E⟩\\nok")?',
      'Fee: $1',
      'amount: 5',
      'recipient: "Bob⟨U+202E⟩\\nok"',
      undefined,
      undefined,
      'Approve',
      undefined,
      'Deny',
    ])
    fee = 2
    await click(client, 0, 'approve')
    expect(client.refused).toEqual(['preview-changed'])
    expect(previewed.wallet.payments).toEqual([])
    // The card that is shown again has the new preview.
    expect(shown(client)).toContain('Fee: $2')
    await click(client, 0, 'approve')
    expect(previewed.wallet.payments).toHaveLength(1)
  })

  test('[AG1542] a call that the preview blocks can only be denied', async () => {
    const client = open()
    await client.say(`${callPayment(9, 'Eve')}[[then]][[say All right.]]`)
    expect(shown(client)).toContain('Nine is too much.')
    expect(shown(client)).not.toContain('Approve')
    await click(client, 0, 'deny')
    expect(client.text).toEqual(['All right.'])
  })

  test('[AG1542] cards speak the language of the browser', async () => {
    const client = open({ 'accept-language': 'ja,en;q=0.5' })
    await client.say(`${callPayment(3, 'Ken')}[[then]][[say はい。]]`)
    expect(shown(client)).toEqual(expect.arrayContaining(['承認', '拒否']))
    await click(client, 0, 'deny')
    expect(textsOf(client)).toEqual(['process_payment: 拒否済み'])
  })
})

describe('questions that are neither approvals nor forms', () => {
  const LINK = 'https://pay.example.com/confirm?order=7'
  const MAPS: AuthConfig = {
    credentialKey: 'maps',
    authScheme: { type: 'apiKey', in: 'header', name: 'x-key' },
  }
  const findWay = tool('find_way', (_args, context) => {
    if (context?.getAuthResponse(MAPS)) return { way: 'Left.' }
    context?.requestCredential(MAPS)
    return { status: 'needs a sign-in' }
  })
  /** A person without a credential. */
  const DECLINING = 'mike'
  let files: McpFixture
  let asking: TestBridge

  beforeAll(async () => {
    const requestedSchema = { type: 'object', properties: { city: { type: 'string' } } }
    const form = { message: 'Which city?', requestedSchema }
    const link = { mode: 'url', message: 'Confirm the order.', url: LINK, elicitationId: 'e1' }
    files = await serveHttp([
      { name: 'ask', _meta: { elicit: [form] } },
      { name: 'confirm', _meta: { elicit: [link] } },
    ])
    asking = await TestBridge.open({
      isLive: false,
      elicitation: true,
      signIn: {
        baseUrl: 'http://localhost:4',
        providers: { maps: { type: 'apiKey', label: 'Maps', check: () => true } },
      },
      agent: (model) => {
        const toolset = new MCPToolset(files.connection, [], 'files')
        return new LlmAgent({ name: 'root', model, tools: [findWay, toolset] })
      },
    })
  })

  afterAll(async () => {
    await asking[Symbol.asyncDispose]()
    await files[Symbol.asyncDispose]()
  })

  describe.each(AG_UI_VERSIONS)('$name', (version) => {
    const it = takeTurns({ group: AG_UI_VERSIONS.indexOf(version), groups: AG_UI_VERSIONS.length })
    const open = (person: string): AgUiClient =>
      new AgUiClient(version, { url: asking.url, path: '/ag-ui/cards', person })
    // A credential belongs to a person.
    const person = version.name.endsWith('1.0.0') ? 'hanako' : 'taro'

    it('[AG1540] a question of an MCP server is a form, whose answer the server receives', async () => {
      const client = open(person)
      await client.say('[[call files_ask {}]][[then]][[say Noted.]]')
      expect(shown(client)).toContain('Which city?')
      await click(client, 0, 'send', { 'text.city': 'Kyoto' })
      expect(client.text).toEqual(['Noted.'])
      expect(JSON.stringify(client.results)).toContain('Kyoto')
      expect((await client.reload()).byId).toEqual(client.byId)
    })

    it('[AG1540] [AP506] a link of an MCP server is shown, and the person opens it with a button', async () => {
      const client = open(person)
      await client.say('[[call files_confirm {}]][[then]][[say Noted.]]')
      expect(shown(client)).toEqual(
        expect.arrayContaining([`Confirm the order.\n${LINK}`, 'Open pay.example.com']),
      )
      expect(cardsOf(client)[0]?.get('open')?.action).toEqual({
        functionCall: { call: 'openUrl', args: { url: LINK }, returnType: 'void' },
      })
      await click(client, 0, 'approve')
      expect(client.text).toEqual(['Noted.'])
      expect(textsOf(client)).toEqual(['mcp_elicitation: answered'])
    })

    it('[AG1540] [AP431] a sign-in is a card, which can be continued when the person has signed in', async () => {
      const client = open(person)
      await client.say('[[call find_way {}]][[then]][[say Go left.]]')
      const [asked] = await asking.page(person).inbox()
      const url = `http://localhost:4/sign-ins/${asked?.id}`
      expect(shown(client)).toEqual(
        expect.arrayContaining([`Sign in to Maps\n${url}`, 'Open localhost:4', 'Continue']),
      )
      expect(cardsOf(client)[0]?.get('open')?.action).toEqual({
        functionCall: { call: 'openUrl', args: { url }, returnType: 'void' },
      })
      await click(client, 0, 'approve')
      expect(client.refused).toEqual(['sign-in-needed'])
      expect(textsOf(client)).toEqual([expect.stringContaining('Sign in, or decline.') as string])
      const response = await fetch(`${asking.url}/sign-ins/${asked?.id}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': person },
        body: '{"apiKey":"a key"}',
      })
      expect(response.status).toBe(200)
      await asking.page(person).untilState(asked?.id ?? '', 'succeeded')
      // The run of the click finds that the sign-in has ended, and shows what followed.
      await click(client, 0, 'approve')
      await expect.poll(async () => (await client.reload()).text).toEqual(['Go left.'])
      expect((await client.reload()).results).toEqual([{ way: 'Left.' }])
      expect(textsOf(await client.reload())).toEqual(['find_way: answered'])
    })

    it('[AG1540] a sign-in can be declined with its card', async () => {
      const client = open(DECLINING)
      await client.say('[[call find_way {}]][[then]][[say As you like.]]')
      await click(client, 0, 'deny')
      expect(textsOf(client)).toEqual(['find_way: declined'])
      expect(client.text).toEqual(['As you like.'])
    })
  })
})
