import { FunctionNode, MCPToolset, RequestInput, requestInputTool, Workflow } from '@google/adk'
import { render, screen, waitFor } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import type { AdkUIMessage } from '../../src/client/index.ts'
import { toRemoteTitle } from '../../src/protocol/remote-titles.ts'
import type { PendingApproval } from '../../src/protocol/server-views.ts'
import {
  AdkProvider,
  ApprovalHistoryList,
  ApprovalInbox,
  type Decision,
  ja,
  MessageList,
  useInbox,
} from '../../src/react/index.ts'
import { toAnswer, toAnswerFields } from '../../src/react/reading/form-fields.ts'
import { readFields } from '../../src/react/reading/read-fields.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { assistant } from '../support/agents.ts'
import { serveHttp } from '../support/mcp-servers.ts'
import { TestBrowser, WAYS } from './support/chat-page.tsx'
import { type Language, LANGUAGES } from './support/languages.ts'
import { answer, approvalPart, payment } from './support/messages.ts'

const SCHEMA = {
  type: 'object',
  properties: {
    city: { type: 'string', title: 'City', description: 'Where you want to go.' },
    nights: { type: 'integer', minimum: 1 },
    notes: { type: 'string', maxLength: 500 },
    start: { type: 'string', format: 'date' },
    meal: {
      oneOf: [
        { const: 'none', title: 'No meal' },
        { const: 'full', title: 'All meals' },
      ],
    },
    breakfast: { type: 'boolean' },
    tags: { type: 'array', items: { type: 'string', maxLength: 5 }, maxItems: 2 },
    contact: {
      type: 'object',
      properties: { email: { type: 'string' }, phone: { type: 'number' } },
      required: ['email'],
    },
  },
  required: ['city', 'nights', 'contact'],
}

const user = userEvent.setup()

/** Fills the fields of a schema by name, and reads the answer. */
function fill(schema: object, values: Readonly<Record<string, unknown>>, locale = 'en') {
  const fields = toAnswerFields({ ...schema }, locale).map((field) =>
    field.name in values ? ({ ...field, value: values[field.name] } as typeof field) : field,
  )
  const read = readFields(fields, locale)
  return read.state === 'valid'
    ? toAnswer({ ...schema }, read.args)
    : Object.fromEntries([...read.problems].map(([name, { type }]) => [name, type]))
}

const WHOLE = { city: 'Nara', nights: '2', 'contact.email': 'a@b.co' }

test.each([
  [
    'strings, numbers and objects',
    SCHEMA,
    WHOLE,
    { city: 'Nara', nights: 2, contact: { email: 'a@b.co' } },
  ],
  [
    'missing fields',
    SCHEMA,
    {},
    { city: 'required', nights: 'number', 'contact.email': 'required' },
  ],
  ['a wrong number', SCHEMA, { ...WHOLE, nights: '0' }, { nights: 'min' }],
  ['too many items', SCHEMA, { ...WHOLE, tags: 'a\nb\nc' }, { tags: 'maxItems' }],
  ['a wrong item', SCHEMA, { ...WHOLE, tags: 'too long' }, { tags: 'maxLength' }],
  ['a text', { type: 'string' }, { answer: 'Yes' }, 'Yes'],
  ['an option', { type: 'string', enum: ['a', 'b'] }, { answer: 'b' }, 'b'],
  [
    'a list of numbers',
    { type: 'array', items: { type: 'number' } },
    { answer: '1\n2.5\n' },
    [1, 2.5],
  ],
  ['nothing', {}, { answer: '' }, { answer: 'required' }],
])('[RE420] the form reads %s', (_name, schema, values, expected) => {
  const read = fill(schema, { breakfast: false, ...values })
  const { breakfast: _breakfast, ...rest } = Object(read) as Record<string, unknown>
  expect(typeof read === 'object' && !Array.isArray(read) ? rest : read).toEqual(expected)
})

test('[RE420] the form reads a time, options with titles and numbers of the language', () => {
  const schema = {
    type: 'object',
    properties: {
      at: { type: 'string', format: 'date-time' },
      meal: SCHEMA.properties.meal,
      amount: { type: 'number' },
    },
  }
  const read = fill(schema, { at: '2026-11-16T10:00', meal: 'full', amount: '1.234,5' }, 'de')
  expect(read).toEqual({
    at: new Date('2026-11-16T10:00').toISOString(),
    meal: 'full',
    amount: 1234.5,
  })
})

/** Shows a question and records the decisions. */
function show(data: Parameters<typeof approvalPart>[0] = {}, locale: Language = 'en') {
  const decided: Decision[] = []
  const part = { type: 'tool-adk_request_input', state: 'input-available', approval: undefined }
  const message = (more: typeof data): AdkUIMessage =>
    answer(
      payment(part as never),
      approvalPart({ kind: 'input', hint: 'Where to?', title: 'Trip', ...data, ...more }),
    )
  const page = (more: typeof data) => (
    <AdkProvider labels={LANGUAGES[locale]}>
      <MessageList
        messages={[message(more)]}
        onDecide={(_id, decision) => void decided.push(decision)}
      />
    </AdkProvider>
  )
  const view = render(page({}))
  return { decided, update: (more: typeof data) => view.rerender(page(more)) }
}

test('[RE421] a question shows its text and a labelled form, announces mistakes, and sends the answer', async () => {
  const { decided, update } = show({ schema: SCHEMA })
  expect(screen.getByRole('group', { name: 'Trip: Where to?' }).textContent).toContain('Where to?')
  // It does not take the focus from what the person does.
  expect(document.activeElement).toBe(document.body)
  await user.click(screen.getByRole('button', { name: 'Send answer' }))
  expect(screen.getAllByRole('alert').map(({ textContent }) => textContent)).toEqual([
    'Enter a value.',
    'Enter a number.',
    'Enter a value.',
  ])
  const city = screen.getByLabelText('City')
  expect(document.activeElement).toBe(city)
  expect(city.getAttribute('aria-describedby')?.split(' ')).toHaveLength(2)
  await user.type(city, 'Nara')
  await user.type(screen.getByLabelText('nights'), '2')
  await user.type(screen.getByLabelText('contact.email'), 'a@b.co')
  await user.selectOptions(screen.getByLabelText('meal (optional)'), 'All meals')
  await user.type(screen.getByLabelText('tags (optional)'), 'a{Enter}b')
  await user.click(screen.getByRole('button', { name: 'Send answer' }))
  const payload = {
    city: 'Nara',
    nights: 2,
    contact: { email: 'a@b.co' },
    meal: 'full',
    breakfast: false,
    tags: ['a', 'b'],
  }
  expect(decided).toEqual([{ approved: true, payload }])
  update({ state: 'approved', approvedPayload: payload })
  // The answer has the titles of the form.
  expect(screen.getByRole('row', { name: 'City Nara' })).toBeTruthy()
  expect(screen.getByText('Answered')).toBeDefined()
  expect(screen.getByRole('table').textContent).toContain('Nara')
})

test('[RE421] a question without a schema takes a text, and can be declined with a reason, in Japanese', async () => {
  const { decided } = show({}, 'ja')
  await user.type(screen.getByLabelText('回答'), 'はい')
  await user.click(screen.getByRole('button', { name: '回答しない' }))
  await user.keyboard('{Escape}')
  await user.click(screen.getByRole('button', { name: '回答を送信' }))
  await user.click(screen.getByRole('button', { name: '回答しない' }))
  await user.type(screen.getByRole('textbox'), '後で')
  await user.click(screen.getByRole('button', { name: '回答しないことを送信' }))
  expect(decided).toEqual([
    { approved: true, payload: 'はい' },
    { approved: false, reason: '後で' },
  ])
})

/** Shows a question, and records the decisions. */
function showQuestion(part: object, asked: ReturnType<typeof approvalPart>): Decision[] {
  const decided: Decision[] = []
  render(
    <AdkProvider>
      <MessageList
        messages={[answer(payment(part as never), asked)]}
        onDecide={(_id, decision) => void decided.push(decision)}
      />
    </AdkProvider>,
  )
  return decided
}

/** Shows a question to open a URL, and records the decisions. */
function showUrl(url: string): Decision[] {
  const part = {
    type: 'tool-mcp_elicitation',
    state: 'input-available',
    approval: undefined,
    input: { mode: 'url', url, message: 'Please pay.' },
  }
  const asked = approvalPart({ kind: 'elicitation', hint: 'Please pay.' })
  return showQuestion(part, asked)
}

test('[RE503] a question to open a URL shows it literally, and opens it only by a click', async () => {
  const url = 'https://pay.example.com/a?b=1'
  const decided = showUrl(url)
  expect(screen.getByText('pay.example.com')).toBeDefined()
  expect(screen.getByText(url)).toBeDefined()
  const link = screen.getByRole('link', { name: 'Open pay.example.com in a new tab' })
  expect(link.getAttribute('href')).toBe(url)
  expect(link.getAttribute('rel')).toBe('noopener noreferrer')
  expect(decided).toEqual([])
  // The test opens no page.
  document.addEventListener('click', (event) => event.preventDefault(), { once: true })
  await user.click(link)
  await user.click(screen.getByRole('button', { name: 'Decline' }))
  expect(decided).toEqual([{ approved: true }, { approved: false }])
})

const ELICITED = {
  toolName: 'mcp_elicitation',
  kind: 'elicitation',
  hint: '何名様ですか。',
  title: 'Question from files',
  path: ['assistant', 'helper'],
} as const

const PENDING = {
  id: 'approval-1',
  state: 'requested',
  requestedAt: 0,
  deadline: Date.now() + 60_000,
  approvals: { given: 0, needed: 1 },
  voted: false,
  version: 0,
  step: 0,
  own: true,
} as const

test.each([
  ['its server', { server: 'files', tool: 'files_ask' }, '「文書」からの質問'],
  ['its tool', { tool: 'ask_guests' }, '「Ask guests」からの質問'],
])(
  '[RE650] the title of a question of an MCP server names %s, in the chat, the inbox and the history',
  (_name, input, title) => {
    const part = { type: 'tool-mcp_elicitation', state: 'input-available', approval: undefined }
    const labels = { ...ja, tool: { ...ja.tool, names: { files: '文書' } } }
    const { path, ...shown } = ELICITED
    const listed: PendingApproval = { ...PENDING, ...shown, path: [...path], args: input }
    const view = render(
      <AdkProvider labels={labels}>
        <MessageList
          messages={[answer(payment({ ...part, input } as never), approvalPart(ELICITED))]}
          onDecide={() => undefined}
        />
        <ApprovalInbox approvals={[listed]} onDecide={() => undefined} />
        <ApprovalHistoryList approvals={[{ ...listed, state: 'succeeded' }]} />
      </AdkProvider>,
    )
    expect(screen.getByRole('group', { name: `${title}: 何名様ですか。` })).toBeDefined()
    expect(screen.getAllByText(title)).toHaveLength(3)
    expect(screen.getAllByText('何名様ですか。')).toHaveLength(3)
    expect(view.container.textContent).not.toContain('mcp_elicitation')
    expect(view.container.textContent).not.toContain('Question from')
    expect(screen.getByText(/^Assistant › Helper › (?:Files ask|Ask guests)$/)).toBeDefined()
  },
)

test('[RE651] an answer is shown in the words of its form, and a box to tick is not optional', async () => {
  const schema = {
    type: 'object',
    properties: {
      seat: { oneOf: [{ const: 'in', title: '店内' }] },
      meal: { type: 'string', enum: ['full', 'none'], enumNames: ['全食', 'なし'] },
      tags: { type: 'array', items: { anyOf: [{ const: 'a', title: '甲' }] } },
      pets: { type: 'boolean' },
      inner: { type: 'object', properties: { smoking: { type: 'boolean' } } },
    },
  }
  const { update } = show({ schema }, 'ja')
  expect(screen.getByLabelText('pets').getAttribute('type')).toBe('checkbox')
  await user.selectOptions(screen.getByLabelText(/^meal/), '全食')
  const approvedPayload = {
    seat: 'in',
    meal: 'none',
    tags: ['a', 'b'],
    pets: true,
    inner: { smoking: false },
    other: false,
  }
  update({ schema, state: 'approved', approvedPayload })
  const rows = screen.getAllByRole('row').map(({ textContent }) => textContent)
  expect(rows.slice(1)).toEqual([
    'seat店内',
    'mealなし',
    'tags甲b',
    'petsはい',
    'innersmokingいいえ',
    'otherfalse',
  ])
})

test('[RE503] a URL with another scheme gets no link', () => {
  showUrl('javascript:alert(1)')
  expect(screen.queryAllByRole('link')).toEqual([])
})

/** Shows that a remote agent asks the person to sign in, and records the decisions. */
function showSignIn(url: string): Decision[] {
  const part = {
    type: 'tool-adk_request_input',
    state: 'input-available',
    approval: undefined,
    input: { agent: 'helper', message: 'Please sign in.', url },
  }
  const schema = { type: 'object', properties: {}, additionalProperties: false }
  const title = 'The remote agent helper asks you to sign in'
  const asked = approvalPart({ kind: 'input', hint: 'Please sign in.', title, schema })
  return showQuestion(part, asked)
}

test('[RE593] a remote agent that asks for a sign-in is named, its link is no answer, and the person continues', async () => {
  const url = 'https://login.example.com/a?b=1'
  const decided = showSignIn(url)
  expect(screen.getByText('The remote agent helper asks you to sign in')).toBeDefined()
  expect(screen.getByText(url)).toBeDefined()
  const link = screen.getByRole('link', { name: 'Open login.example.com in a new tab' })
  expect(link.getAttribute('href')).toBe(url)
  expect(link.getAttribute('rel')).toBe('noopener noreferrer')
  document.addEventListener('click', (event) => event.preventDefault(), { once: true })
  await user.click(link)
  expect(decided).toEqual([])
  await user.click(screen.getByRole('button', { name: 'Continue' }))
  expect(decided).toEqual([{ approved: true, payload: {} }])
})

test.each([
  ['answer', 'input', 'リモートエージェント「helper」からの質問'],
  ['approval', undefined, 'リモートエージェント「helper」が承認を求めています'],
  ['signIn', 'input', 'リモートエージェント「helper」がサインインを求めています'],
] as const)(
  '[RE593] the title of a remote agent that asks (%s) is in the language of the page, and its words stay as they are',
  (asks, kind, title) => {
    const data = {
      title: toRemoteTitle(asks, 'helper'),
      hint: 'Which city?',
      ...(kind && { kind }),
    }
    const call = kind
      ? { type: 'tool-adk_request_input', state: 'input-available', approval: undefined }
      : { type: 'dynamic-tool', toolName: 'helper.pay' }
    render(
      <AdkProvider labels={ja}>
        <MessageList messages={[answer(payment(call as never), approvalPart(data))]} />
      </AdkProvider>,
    )
    expect(screen.getByText(title)).toBeDefined()
    expect(screen.getAllByText('Which city?').length).toBeGreaterThan(0)
    expect(document.body.textContent).not.toContain('The remote agent')
  },
)

test('[RE593] a title of the application that resembles that of a remote agent stays as it is', () => {
  show({ title: 'The remote agent team asks everybody' }, 'ja')
  expect(screen.getByText('The remote agent team asks everybody')).toBeDefined()
})

test.each(['http://login.example.com/', 'javascript:alert(1)'])(
  '[RE593] a sign-in of a remote agent at %s gets no link',
  (url) => {
    showSignIn(url)
    expect(screen.queryAllByRole('link')).toEqual([])
  },
)

const ARGS = {
  message: 'How many nights?',
  response_schema: {
    type: 'object',
    properties: { nights: { type: 'integer' } },
    required: ['nights'],
  },
}
const ASK = `[[call adk_request_input ${JSON.stringify(ARGS)}]][[then]][[say Booked.]]`

describe.each(WAYS)('over %s', (way) => {
  test('[RE503] a person answers an MCP server in the chat while its call runs', async () => {
    const requestedSchema = { type: 'object', properties: { nights: { type: 'integer' } } }
    const elicit = { message: 'How many?', requestedSchema }
    await using files = await serveHttp([{ name: 'ask', _meta: { elicit } }])
    const toolset = new MCPToolset(files.connection, [], 'files')
    await using testBridge = await TestBridge.open({
      isLive: false,
      elicitation: true,
      agent: (model) => assistant(model, { tools: [toolset] }),
    })
    await using browser = new TestBrowser(testBridge, way)
    // Over SSE, the AI SDK sends no output while a stream is open.
    const page = browser.show(way === 'sse' ? { api: browser.api } : {})
    page.say('[[call files_ask {}]][[then]][[say Booked.]]')
    await user.type(await screen.findByLabelText(/nights/), '3')
    await user.click(screen.getByRole('button', { name: 'Send answer' }))
    await page.until('Booked.')
    expect(JSON.stringify(testBridge.results)).toContain('nights')
  })

  test.each([
    ['with an api', true],
    ['without one', false],
  ])(
    '[RE422] a person answers in the chat, %s, and the reply continues there',
    async (_name, hasApi) => {
      await using testBridge = await TestBridge.open({ tools: () => [requestInputTool] })
      await using browser = new TestBrowser(testBridge, way)
      const page = browser.show(hasApi ? { api: browser.api } : {})
      page.say(ASK)
      await user.type(await screen.findByLabelText('nights'), '3')
      await user.click(screen.getByRole('button', { name: 'Send answer' }))
      await page.until('Booked.')
      expect(testBridge.results).toEqual([{ nights: 3 }])
      await waitFor(() => expect(screen.getByText('Answered')).toBeDefined())
    },
  )

  test('[RE420] a person answers the node of a workflow in the form of its schema, and the workflow continues', async () => {
    const received: unknown[] = []
    const ask = new FunctionNode('ask', async function* ask() {
      const responseSchema = z.object({ city: z.string().min(2), nights: z.number().int().min(1) })
      yield new RequestInput({ message: 'Where to, and for how long?', responseSchema })
    })
    const book = new FunctionNode('book', (_context, input) => {
      received.push(input)
      return 'Booked.'
    })
    await using testBridge = await TestBridge.open({
      isLive: false,
      tools: () => [],
      agent: () => new Workflow({ name: 'trip', edges: [['START', ask, book]] }),
    })
    await using browser = new TestBrowser(testBridge, way)
    const page = browser.show({ api: browser.api })
    page.say('Go.')
    await screen.findByRole('group', { name: /Where to, and for how long\?/ })
    await user.type(screen.getByLabelText('city'), 'Nara')
    await user.type(screen.getByLabelText('nights'), '0')
    await user.click(screen.getByRole('button', { name: 'Send answer' }))
    expect(screen.getByRole('alert')).toBeDefined()
    await user.clear(screen.getByLabelText('nights'))
    await user.type(screen.getByLabelText('nights'), '3')
    await user.click(screen.getByRole('button', { name: 'Send answer' }))
    await page.until('Booked.')
    expect(received).toEqual([{ city: 'Nara', nights: 3 }])
    await waitFor(() => expect(screen.getByText('Answered')).toBeDefined())
    expect(testBridge.errors).toEqual([])
  })
})

function InboxPage({ browser }: { readonly browser: TestBrowser }) {
  const { approvals, decide, refusals, deciding } = useInbox(browser.api)
  return <ApprovalInbox {...{ approvals, refusals, deciding }} onDecide={decide} />
}

test('[RE422] a question is answered in the inbox', async () => {
  await using testBridge = await TestBridge.open({ tools: () => [requestInputTool] })
  const page = testBridge.page()
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: ASK }] }
  await page.post({ id: 'chat-1', messages: [message] })
  await using browser = new TestBrowser(testBridge, 'sse')
  const view = render(<InboxPage browser={browser} />)
  await screen.findByRole('listitem', { name: 'How many nights?' })
  await user.type(screen.getByLabelText('nights'), '4')
  await user.click(screen.getByRole('button', { name: 'Send answer' }))
  await screen.findByText('No approvals are pending.')
  await page.untilMessages((messages) => JSON.stringify(messages[1]).includes('Booked.'))
  expect(testBridge.results).toEqual([{ nights: 4 }])
  view.unmount()
})
