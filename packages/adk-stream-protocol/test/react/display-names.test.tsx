import { render, screen, within } from '@testing-library/react'
import { describe, expect, test } from 'vitest'

import {
  AdkProvider,
  ApprovalHistoryList,
  ApprovalFilters,
  ApprovalInbox,
  en,
  ja,
  MessageList,
} from '../../src/react/index.ts'
import { toWords } from '../../src/react/reading/display-name.ts'
import { answer, approvalPart, payment } from './support/messages.ts'

test.each([
  ['book_trip', 'Book trip'],
  ['getWeather', 'Get weather'],
  ['get_URL', 'Get URL'],
  ['readHTTPBody', 'Read HTTP body'],
  ['github-create.issue', 'Github create issue'],
  ['天気', '天気'],
  ['__', '__'],
  ['', ''],
])('[RE630] the name %s in words is %s', (name, words) => expect(toWords(name)).toBe(words))

/** A call that asks for an answer or a sign-in. */
function asked(toolCallId = 'call-1') {
  const { approval: _approval, ...call } = payment({ toolCallId, state: 'input-available' })
  return call as ReturnType<typeof payment>
}

/** An approval for which the policy gives no title. */
function untitled() {
  const part = approvalPart()
  if (part.type !== 'data-approval') throw new TypeError('No approval.')
  const { title: _title, ...data } = part.data
  return { ...part, data }
}

/** The part of another approval. */
function another(data: NonNullable<Parameters<typeof approvalPart>[0]>) {
  const part = approvalPart(data)
  if (part.type !== 'data-approval') throw new TypeError('No approval.')
  return { ...part, id: part.data.approvalId }
}

const WEATHER = {
  type: 'tool-get_weather',
  toolCallId: 'call-w',
  state: 'output-available',
  input: { location: 'Tokyo' },
  output: { temperature: 18 },
} as const

const labels = { ...en, tool: { ...en.tool, names: { get_weather: 'Weather' } } }

describe('titles', () => {
  test('[RE630] a card has a title for people, and its function is in the details', () => {
    render(
      <AdkProvider describeCall={() => 'Pay 50'}>
        <MessageList messages={[answer(WEATHER, payment(), untitled())]} />
      </AdkProvider>,
    )
    const weather = screen.getByRole('group', { name: 'Get weather' })
    expect(within(weather).getByText('Get weather').closest('header')).not.toBeNull()
    expect(within(weather).getByText('get_weather').closest('details')).not.toBeNull()
    expect(weather.dataset['tool']).toBe('get_weather')
    const approval = screen.getByRole('group', { name: 'Process payment: Pay 50' })
    expect(within(approval).getByText('process_payment').closest('details')).not.toBeNull()
  })

  test.each([
    ['the name that the application gives', { labels }, {}, 'Weather'],
    ['the title of the part', {}, { title: 'Forecast' }, 'Forecast'],
    ['the name of the application before the title', { labels }, { title: 'Forecast' }, 'Weather'],
    ['the name in words if the title is empty', {}, { title: ' ' }, 'Get weather'],
    ['hidden characters as code points', {}, { title: 'a\u202Eb' }, 'a⟨U+202E⟩b'],
  ])('[RE630] the title is %s', (_what, settings, part, title) => {
    render(
      <AdkProvider {...settings}>
        <MessageList messages={[answer({ ...WEATHER, ...part })]} />
      </AdkProvider>,
    )
    expect(screen.queryByRole('group', { name: title })).not.toBeNull()
  })

  test('[RE630] an approval has the title of its policy', () => {
    render(<MessageList messages={[answer(payment(), approvalPart({ title: 'Transfer' }))]} />)
    expect(screen.queryByRole('group', { name: /^Transfer: / })).not.toBeNull()
  })

  test('[RE630] inbox, history and filter show the same titles', () => {
    const approval = {
      id: 'a1',
      toolName: 'book_trip',
      args: { place: 'Kyoto' },
      state: 'succeeded',
      requestedAt: 0,
      deadline: Date.now() + 60_000,
      approvals: { given: 0, needed: 1 },
      step: 1,
      own: true,
      voted: false,
    } as const
    const question = { ...approval, id: 'a2', toolName: 'adk_request_input' }
    render(
      <>
        <ApprovalInbox approvals={[approval]} onDecide={() => undefined} />
        <ApprovalHistoryList approvals={[question]} />
        <ApprovalFilters
          filter={{ state: 'all' }}
          onChange={() => undefined}
          approvals={[approval, question]}
        />
      </>,
    )
    expect(screen.getAllByText('Book trip').map(({ tagName }) => tagName)).toContain('OPTION')
    expect(screen.getByRole('option', { name: 'Question' })).toHaveProperty(
      'value',
      'adk_request_input',
    )
    expect(screen.getAllByText('Book trip')).toHaveLength(2)
    // The function is in the headline of the inbox, and in the details of the history.
    expect(screen.queryByText('Run book_trip')).not.toBeNull()
    expect(screen.queryByText('adk_request_input')?.closest('.adk-function')).not.toBeNull()
  })

  test('[RE630] the path of a call and the steps of an agent are in words', () => {
    render(
      <MessageList
        messages={[
          answer(
            {
              type: 'data-steps',
              data: {
                agent: 'weekend_trip',
                kind: 'sequence',
                steps: [{ name: 'find_hotel', state: 'running' }],
              },
            },
            payment(),
            approvalPart({ path: ['assistant', 'head_accountant'] }),
          ),
        ]}
      />,
    )
    expect(screen.queryByText('Assistant › Head accountant › Process payment')).not.toBeNull()
    expect(screen.queryByText('Steps of Weekend trip')).not.toBeNull()
    expect(screen.queryByText('Find hotel')).not.toBeNull()
  })
})

const agent = (id: string, name: string, output: unknown = { status: 'pending' }) => ({
  type: 'dynamic-tool' as const,
  toolName: name,
  toolCallId: id,
  state: 'output-available' as const,
  input: { request: 'Pay.' },
  output,
})
const waiting = (data = {}) => [
  agent('call-a', 'accountant'),
  payment(),
  approvalPart({ path: ['assistant', 'accountant'], ...data }),
]
const card = (name = 'Accountant') => screen.getByRole('group', { name })
const status = (name?: string) => card(name).querySelector('.adk-waits-for')?.textContent

describe('an agent that is used as a tool', () => {
  test('[RE631] says what it waits for, as long as a call inside it waits', () => {
    const view = render(<MessageList messages={[answer(...waiting())]} />)
    expect(card().textContent).toContain('Waiting')
    expect(card().textContent).not.toContain('Running')
    expect(status()).toBe('Waiting for approval: Run process_payment')
    // Approved: the call inside runs.
    const [outer, , part] = waiting({ state: 'approved' })
    const running = payment({ state: 'approval-responded' })
    view.rerender(
      <MessageList messages={[answer(...[outer, running, part].filter((p) => p !== undefined))]} />,
    )
    expect(card().textContent).toContain('Running')
    expect(status()).toBeUndefined()
  })

  test('[RE631] names the number of other questions, at any depth, and not those of other agents', () => {
    render(
      <MessageList
        messages={[
          answer(
            agent('call-a', 'accountant'),
            agent('call-b', 'broker'),
            payment(),
            approvalPart({ path: ['assistant', 'accountant'] }),
            payment({ toolCallId: 'call-2', approval: { id: 'approval-2' } }),
            another({
              approvalId: 'approval-2',
              toolCallId: 'call-2',
              path: ['assistant', 'accountant', 'bank'],
            }),
          ),
        ]}
      />,
    )
    expect(status()).toBe('Waiting for approval: Run process_payment (and 1 more)')
    expect(card('Broker').textContent).toContain('Running')
  })

  test.each([
    ['a question', { kind: 'input', hint: 'Which account?' }, '回答待ち：Which account?'],
    [
      'a sign-in',
      { kind: 'sign-in', signIn: { type: 'oauth2', provider: 'bank', label: 'Bank', scopes: [] } },
      'サインイン待ち：Bank',
    ],
  ] as const)('[RE631] waits for %s inside', (_what, data, sentence) => {
    const [outer, , part] = waiting(data)
    const call = asked()
    render(
      <AdkProvider labels={ja}>
        <MessageList messages={[answer(...[outer, call, part].filter((p) => p !== undefined))]} />
      </AdkProvider>,
    )
    expect(status()).toBe(sentence)
    expect(ja.tool.waitingInside).toBe('待機中')
  })

  test.each([
    ['of an agent', 'accountant', 'call-x.elicitation.1', ['assistant', 'accountant']],
    ['of an MCP server', 'accountant', 'call-a.elicitation.1', undefined],
  ])('[RE631] a running call waits for the answer to an MCP server: a call %s', (...given) => {
    const [, name, toolCallId, path] = given
    const { output: _output, ...called } = agent('call-a', name)
    const question = { toolCallId, kind: 'elicitation', hint: 'Which account?' } as const
    const parts = (state: 'requested' | 'approved') =>
      answer(
        { ...called, state: 'input-available' },
        asked(toolCallId),
        approvalPart({ ...question, state, ...(path && { path }) }),
      )
    const view = render(<MessageList messages={[parts('requested')]} />)
    expect(status()).toBe('Waiting for an answer: Which account?')
    expect(card().textContent).not.toContain('Running')
    view.rerender(<MessageList messages={[parts('approved')]} />)
    expect(status()).toBeUndefined()
    expect(card().textContent).toContain('Running')
  })

  test('[RE631] an approved call that waits inside is not shown as done', () => {
    render(
      <MessageList
        messages={[
          answer(
            payment({
              toolCallId: 'call-o',
              state: 'output-available',
              output: { status: 'pending' },
            }),
            another({
              approvalId: 'approval-o',
              toolCallId: 'call-o',
              state: 'approved',
            }),
            asked('call-o.sign-in'),
            approvalPart({
              toolCallId: 'call-o.sign-in',
              kind: 'sign-in',
              path: ['assistant'],
              signIn: { type: 'oauth2', provider: 'bank', label: 'Bank', scopes: [] },
            }),
          ),
        ]}
      />,
    )
    const outer = screen.getByRole('group', { name: /^Payment: / })
    expect(outer.dataset['phase']).toBe('pending')
    expect(outer.textContent).toContain('Waiting for a sign-in: Bank')
    expect(outer.textContent).not.toContain('Done')
  })
})

const table = (args: Record<string, unknown>) => {
  render(<MessageList messages={[answer(payment({ input: args }), approvalPart())]} />)
  return screen.getByRole('table', { name: 'Arguments' })
}

function nest(depth: number): unknown {
  return depth === 0 ? 'end' : [nest(depth - 1)]
}

describe('lists and objects in arguments', () => {
  test('[RE632] a list is a list, and an object has a row for each field', () => {
    const view = table({
      titles: ['One', 'Two'],
      hotel: { name: 'Inn', rooms: [{ beds: 2 }, { beds: 1 }] },
      nothing: [],
      texts: ['', 'x'],
    })
    expect(
      within(view)
        .getAllByRole('listitem')
        .map(({ textContent }) => textContent),
    ).toEqual(['One', 'Two', 'beds2', 'beds1', '(empty)', 'x'])
    expect(
      within(view)
        .getAllByRole('term')
        .map(({ textContent }) => textContent),
    ).toEqual(['name', 'rooms', 'beds', 'beds'])
    expect(view.textContent).not.toMatch(/[[\]{}"]/)
    expect(
      within(view)
        .getAllByText('(empty)')
        .map(({ tagName }) => tagName),
    ).toEqual(['EM', 'EM'])
  })

  test('[RE632] hidden and look-alike characters are visible at any depth, in names as well', () => {
    const view = table({ people: [{ 'na\u202Eme': '\u202Eecila' }, ['pаypal']] })
    expect(view.textContent).toContain('na⟨U+202E⟩me')
    expect(view.textContent).toContain('⟨U+202E⟩ecila')
    expect(within(view).getByText(/look-alike/).textContent).toContain('pа⟨U+0430⟩ypal')
    expect(view.querySelectorAll('bdi')).toHaveLength(4)
  })

  test('[RE632] values that are nested very deeply are shown as JSON', () => {
    expect(table({ deep: nest(9) }).textContent).toContain('[[["end"]]]')
  })
})
