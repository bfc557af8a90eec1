import { readFileSync } from 'node:fs'

import { act, render, screen } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import type { ComponentProps } from 'react'
import { afterEach, describe, expect, test, vi } from 'vitest'

import { AdkError, type AdkUIMessage } from '../../src/client/index.ts'
import { ERROR_CODES } from '../../src/protocol/error-codes.ts'
import { readProblem } from '../../src/react/reading/problem.ts'
import {
  AdkProvider,
  type AdkLabels,
  ConnectionBadge,
  ConnectionNotice,
  en,
  ja,
  MessageList,
  ProblemCard,
} from '../../src/react/index.ts'
import { LANGUAGES } from './support/languages.ts'
import { answer, payment, approvalPart } from './support/messages.ts'

afterEach(() => void vi.useRealTimers())

const user = userEvent.setup()
const says = (id: string, text: string): AdkUIMessage => ({
  id,
  role: 'assistant',
  parts: [{ type: 'text', text }],
})

const grown = (text: string): AdkUIMessage =>
  answer({ type: 'text', text: 'first part' }, payment(), approvalPart(), {
    type: 'text',
    text,
    state: 'streaming',
  })

describe('the conversation', () => {
  test('[RE12] a chunk renders the message that it belongs to and the part that grew, and no other', () => {
    const rendered: string[] = []
    const renderText = (text: string) => {
      rendered.push(text)
      return <p>{text}</p>
    }
    // Called for each message that is rendered and not being written.
    const renderActions = vi.fn(() => null)
    const earlier = Array.from({ length: 50 }, (_, index) => says(`m${index}`, `earlier ${index}`))
    const page = (last: AdkUIMessage) => (
      <AdkProvider renderText={renderText}>
        <MessageList
          messages={[...earlier, last]}
          status="streaming"
          renderActions={renderActions}
        />
      </AdkProvider>
    )
    const view = render(page(grown('He')))
    expect(renderActions).toHaveBeenCalled()
    renderActions.mockClear()
    rendered.length = 0
    view.rerender(page(grown('Hello')))
    // Twice, because StrictMode renders all that it renders twice.
    expect(rendered).toEqual(['Hello', 'Hello'])
    expect(renderActions).not.toHaveBeenCalled()
  })

  test('[RE1480] a chat is shown as the hook returns it, and a prop replaces the same part', async () => {
    const decided: string[] = []
    const chat = {
      messages: [answer(payment(), approvalPart())],
      status: 'ready',
      decide: async (id: string) => void decided.push(id),
      cancelDecision: () => true,
      refusals: new Map(),
      votes: new Map(),
      hints: new Map([['approval-1', 'The current hint']]),
      details: new Map(),
      unconfirmed: new Set<string>(),
      waitingDecisions: new Map(),
      isConnected: true,
    }
    const view = render(<MessageList chat={chat} />)
    expect(screen.getByText('The current hint')).toBeTruthy()
    await user.click(screen.getByRole('button', { name: en.approval.approve }))
    expect(decided).toHaveLength(1)
    view.rerender(<MessageList chat={chat} messages={[says('m', 'Another message')]} />)
    expect(screen.getByText('Another message')).toBeTruthy()
    expect(screen.queryByText('The current hint')).toBeNull()
  })

  test('[RE12] a part that is changed in place is shown with its new text', () => {
    const first = grown('He')
    const view = render(<MessageList messages={[first]} status="streaming" />)
    // The AI SDK mutates the first message object of a reply; copies follow.
    Object.assign(first.parts.at(-1) ?? {}, { text: 'Hello' })
    view.rerender(<MessageList messages={[grown('Hello')]} status="streaming" />)
    expect(screen.queryByText('Hello')).not.toBeNull()
  })

  test('[RE12] a refusal renders its card, and no message', () => {
    const rendered: string[] = []
    const renderText = (text: string) => {
      rendered.push(text)
      return <p>{text}</p>
    }
    const messages = [
      says('m1', 'earlier'),
      answer({ type: 'text', text: 'May I?' }, payment(), approvalPart({ deadline: 0 })),
    ]
    const renderActions = vi.fn(() => null)
    const page = (refusals: ReadonlyMap<string, { code: string; message: string }>) => (
      <AdkProvider renderText={renderText}>
        <MessageList messages={messages} refusals={refusals} renderActions={renderActions} />
      </AdkProvider>
    )
    const view = render(page(new Map()))
    // Both messages, each twice because of StrictMode.
    expect(rendered.toSorted()).toEqual(['May I?', 'May I?', 'earlier', 'earlier'])
    expect(renderActions).toHaveBeenCalledTimes(4)
    expect(screen.queryByText('No.')).toBeNull()
    rendered.length = 0
    renderActions.mockClear()
    view.rerender(page(new Map([['approval-1', { code: 'not-allowed', message: 'No.' }]])))
    expect(screen.queryByText('No.')).not.toBeNull()
    expect(rendered).toEqual([])
    expect(renderActions).not.toHaveBeenCalled()
  })

  test('[RE16] a conversation is a log of articles that name the speaker, without internal parts', () => {
    render(
      <MessageList
        status="submitted"
        messages={[
          { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hi' }] },
          answer(
            { type: 'step-start' },
            { type: 'reasoning', text: 'Hm.', state: 'done' },
            { type: 'data-executable-code', data: { language: 'PYTHON', code: 'print(6*7)' } },
            { type: 'data-code-execution-result', data: { outcome: 'OK', output: '42' } },
            { type: 'data-agent', data: { name: 'cook' } },
            { type: 'text', text: 'It is 42.' },
          ),
          { id: 'u2', role: 'user', parts: [{ type: 'text', text: 'More' }] },
        ]}
      />,
    )
    const log = screen.getByRole('log', { name: 'Conversation' })
    expect(log.getAttribute('aria-live')).toBe('off')
    expect(screen.getAllByRole('heading').map(({ textContent }) => textContent)).toEqual([
      'You',
      'Assistant',
      'You',
    ])
    expect(screen.getByText('Reasoning').closest('details')).toHaveProperty('open', false)
    expect(log.textContent).toContain('print(6*7)')
    expect(log.textContent).toContain('42')
    expect(log.textContent).not.toContain('cook')
    expect(log.textContent).toContain('Thinking…')
  })

  test('[RE17] addresses from the model that would run something never get into the page', () => {
    render(
      <MessageList
        messages={[
          answer(
            { type: 'text', text: '<b onclick="x()">bold</b>' },
            { type: 'source-url', sourceId: 's1', url: 'javascript:alert(1)', title: 'evil' },
            { type: 'source-url', sourceId: 's2', url: 'https://example.com/', title: 'good' },
            { type: 'file', url: 'javascript:alert(1)', mediaType: 'text/html' },
            { type: 'file', url: 'javascript:alert(1)', mediaType: 'image/png' },
            { type: 'file', url: '/\\evil.example/a.pdf', mediaType: 'application/pdf' },
            { type: 'file', url: '//evil.example/a.png', mediaType: 'image/png' },
            { type: 'file', url: './a.png', mediaType: 'image/png' },
            { type: 'file', url: 'data:image/png;base64,AAAA', mediaType: 'image/png' },
            { type: 'file', url: 'https://example.com/a.pdf', mediaType: 'application/pdf' },
          ),
        ]}
      />,
    )
    const links = screen.getAllByRole('link').map((link) => link.getAttribute('href'))
    expect(links).toEqual(['https://example.com/a.pdf', 'https://example.com/'])
    expect(screen.getAllByRole('img')).toHaveLength(1)
    expect(document.querySelector('b')).toBeNull()
  })

  test('[RE374] a message that no server has received says so', () => {
    const metadata = { stopped: true, unsent: true }
    const unsent: AdkUIMessage = { ...says('u1', 'Hello.'), role: 'user', metadata }
    const { container } = render(<MessageList messages={[unsent]} />)
    expect(container.textContent).toContain('Hello.Not sent')
    expect(screen.queryByText('Stopped')).toBeNull()
  })

  test.each([
    ['length', 'Cut off: the reply reached its maximum length.', '途中で終わっています'],
    ['content-filter', 'Cut off: the model stopped', '制限のため'],
    ['error', 'Cut off: the model made a mistake', '誤動作'],
    ['other', 'Cut off: the model made a mistake', '誤動作'],
  ] as const)('[RE1080] a reply that ended with %s says so', (finishReason, english, japanese) => {
    const cut: AdkUIMessage = { ...says('m1', 'A cut answer'), metadata: { finishReason } }
    const view = render(<MessageList messages={[cut]} />)
    expect(view.container.textContent).toContain(english)
    view.rerender(
      <AdkProvider labels={ja}>
        <MessageList messages={[cut]} />
      </AdkProvider>,
    )
    expect(view.container.textContent).toContain(japanese)
    const metadata = { finishReason: 'stop' } as const
    view.rerender(<MessageList messages={[{ ...cut, metadata }]} />)
    expect(view.container.textContent).not.toContain('Cut off')
  })

  test('[RE16] the last reply shows its usage and can be regenerated, except while a call is pending', async () => {
    const onRegenerate = vi.fn()
    const whole: AdkUIMessage = {
      ...says('m1', 'Done.'),
      metadata: {
        usage: { inputTokens: 1234, outputTokens: 5, totalTokens: 1239 },
        modelVersion: 'gemini-x',
        stopped: true,
      },
    }
    const view = render(<MessageList messages={[whole]} onRegenerate={onRegenerate} />)
    expect(screen.getByText('1,234 tokens in, 5 out')).toBeDefined()
    expect(screen.getByText('Stopped')).toBeDefined()
    await user.click(screen.getByRole('button', { name: 'Try again' }))
    expect(onRegenerate).toHaveBeenCalledOnce()
    view.rerender(
      <MessageList
        messages={[whole, answer(payment(), approvalPart())]}
        onRegenerate={onRegenerate}
      />,
    )
    expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull()
  })

  test.each([
    { call: payment({ state: 'output-available', output: {} }), state: 'approved', again: 0 },
    { call: payment({ state: 'output-error', errorText: 'x' }), state: 'unknown', again: 0 },
    { call: payment({ state: 'output-error', errorText: 'x' }), state: 'expired', again: 1 },
    { call: payment({ state: 'output-denied' }), state: 'denied', again: 1 },
  ] as const)('[RE20] an answer whose call is $state can be made again: $again', (given) => {
    const done = answer(given.call, approvalPart({ state: given.state }))
    // A live reply may be several messages: all of them would be removed.
    for (const messages of [[done], [done, says('m2', 'And more.')]]) {
      const view = render(<MessageList messages={messages} onRegenerate={() => undefined} />)
      expect(screen.queryAllByRole('button', { name: 'Try again' })).toHaveLength(given.again)
      view.unmount()
    }
  })

  test('[RE20] a reply with a call that needs no approval can be regenerated', () => {
    const call = { state: 'output-available', input: {}, output: {}, toolCallId: 'w' } as const
    const weather = answer({ type: 'tool-get_weather', ...call })
    render(<MessageList messages={[weather]} onRegenerate={() => undefined} />)
    expect(screen.getByRole('button', { name: 'Try again' })).toBeDefined()
  })
})

describe('labels', () => {
  test('[RE16] English and Japanese say the same things', () => {
    expect(shapeOf(ja)).toEqual(
      shapeOf({
        ...en,
        approval: { ...en.approval, refusals: ja.approval.refusals },
        problem: { ...en.problem, refusals: ja.problem.refusals },
      }),
    )
    const japanese = sentencesOf(ja)
    expect(japanese.filter((sentence) => !/[ぁ-んァ-ヶ一-龠]/.test(sentence))).toEqual(['ja'])
  })

  test('[RE16] a page in Japanese, and one in words of its own', () => {
    const message = answer(payment(), approvalPart())
    const view = render(
      <AdkProvider labels={ja}>
        <MessageList messages={[message]} />
      </AdkProvider>,
    )
    expect(screen.getByRole('button', { name: '承認' })).toBeDefined()
    expect(screen.getByRole('group').textContent).toContain('中リスク')
    const own: AdkLabels = { ...en, approval: { ...en.approval, approve: 'Go ahead' } }
    view.rerender(
      <AdkProvider labels={own}>
        <MessageList messages={[message]} />
      </AdkProvider>,
    )
    expect(screen.getByRole('button', { name: 'Go ahead' })).toBeDefined()
  })
})

describe('problems', () => {
  test('[RE10] a message that cannot be replaced says why, and what to do', () => {
    const problem = { kind: 'refused', code: 'already-acted', message: 'Rejected.' } as const
    const { container } = render(<ProblemCard problem={problem} onRecover={vi.fn()} />)
    expect(container.textContent).toContain('something was approved after it. Write a new one.')
  })

  test('[RE10] the person says when they have read the newer messages that were not replaced', () => {
    const problem = { kind: 'refused', code: 'newer-messages', message: 'Rejected.' } as const
    const onRecover = vi.fn()
    render(<ProblemCard problem={problem} onRecover={onRecover} />)
    act(() => screen.getByRole('button', { name: 'OK' }).click())
    expect(onRecover).toHaveBeenCalledOnce()
  })

  test('[RE10] a rate limit counts down, and only then can be tried again', async () => {
    vi.useFakeTimers()
    const onRecover = vi.fn()
    render(
      <ProblemCard
        problem={{ kind: 'rate-limited', retryAt: Date.now() + 2_000 }}
        onRecover={onRecover}
      />,
    )
    const retry = screen.getByRole('button', { name: 'Try again' })
    expect(screen.getByText(/in 2 seconds/)).toBeDefined()
    expect(retry).toHaveProperty('disabled', true)
    act(() => void vi.advanceTimersByTime(1_000))
    expect(screen.getByText(/in 1 second\./)).toBeDefined()
    act(() => void vi.advanceTimersByTime(1_000))
    expect(retry).toHaveProperty('disabled', false)
    act(() => retry.click())
    expect(onRecover).toHaveBeenCalledOnce()
  })

  test.each([
    { kind: 'disconnected', title: 'The connection was lost', action: 'Reconnect' },
    { kind: 'busy', title: 'A reply is still in progress', action: 'Try again' },
    { kind: 'unavailable', title: 'Something went wrong', action: 'Try again' },
    { kind: 'overloaded', title: 'The model is overloaded', action: 'Try again' },
    { kind: 'mistake', title: 'The model made a mistake', action: 'Try again' },
    { kind: 'no-access', title: 'The server has no access to the model', action: undefined },
    { kind: 'blocked', title: 'The model declined to answer', action: undefined },
    { kind: 'unfinished', title: 'The reply is unfinished', action: undefined },
  ] as const)('[RE10] $kind says what to do', async ({ kind, title, action }) => {
    const onRecover = vi.fn()
    const onReload = vi.fn()
    render(<ProblemCard problem={{ kind }} onRecover={onRecover} onReload={onReload} />)
    expect(screen.getByRole('alert').textContent).toContain(title)
    const button = screen.queryByRole('button')
    expect(button?.textContent).toBe(action)
    if (button) await user.click(button)
    expect(onRecover).toHaveBeenCalledTimes(action === undefined ? 0 : 1)
    expect(onReload).not.toHaveBeenCalled()
  })

  test('[RE850] a person who is signed out can try again, or reload the page', async () => {
    const onRecover = vi.fn()
    const onReload = vi.fn()
    const problem = { kind: 'signed-out' } as const
    render(<ProblemCard problem={problem} onRecover={onRecover} onReload={onReload} />)
    expect(screen.getByRole('alert').textContent).toContain('Sign in again in another tab')
    await user.click(screen.getByRole('button', { name: 'Try again' }))
    expect(onRecover).toHaveBeenCalledOnce()
    await user.click(screen.getByRole('button', { name: 'Reload the page' }))
    expect(onReload).toHaveBeenCalledOnce()
  })

  test('[RE851] a refusal is described in Japanese, and says why another attempt would not help', () => {
    const error = new AdkError('unknown-agent', 'The agent of this chat is not available.')
    const problem = readProblem(error, [], 0)
    const card = <ProblemCard problem={problem} onRecover={vi.fn()} />
    const view = render(card)
    expect(screen.getByRole('alert').textContent).toContain('The agent of this chat')
    expect(screen.queryByRole('button')).toBeNull()
    view.rerender(<AdkProvider labels={ja}>{card}</AdkProvider>)
    expect(screen.getByRole('alert').textContent).toContain('新しいチャットを始めてください')
  })

  test('[RE851] every error code that can refuse a decision or a message has a Japanese text', () => {
    const decisions =
      'unauthenticated unavailable unknown-approval not-allowed approval-decided ' +
      'approval-voted approval-expired approval-cancelled not-editable no-payload ' +
      'not-voted invalid-answer preview-changed preview-failed call-blocked ' +
      'sign-in-needed turn-running turn-lost bad-request too-large too-fast ' +
      'too-many-turns overloaded internal store-failed'
    expect(decisions.split(' ').filter((code) => ja.approval.refusals[code] === undefined)).toEqual(
      [],
    )
    const shown = ERROR_CODES.filter(
      (code) => readProblem(new AdkError(code, ''), [], 0).kind === 'refused',
    )
    expect(shown.filter((code) => ja.problem.refusals[code] === undefined)).toEqual([])
  })

  test('[RE18] a lost connection is announced, with the time until the next attempt', () => {
    vi.useFakeTimers()
    const view = render(<ConnectionBadge connection={{ state: 'open' }} />)
    expect(screen.getByRole('status').textContent).toBe('Connected')
    view.rerender(<ConnectionBadge connection={{ state: 'lost', retryAt: Date.now() + 3_000 }} />)
    expect(screen.getByRole('status').textContent).toBe('Connection lost, reconnecting…')
    expect(screen.getByText('3')).toBeDefined()
    act(() => void vi.advanceTimersByTime(2_000))
    expect(screen.getByText('1')).toBeDefined()
  })
})

/** Returns the keys of all labels without their values. */
function shapeOf(labels: object): unknown {
  return Object.fromEntries(
    Object.entries(labels).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === 'object' && value !== null ? shapeOf(value) : typeof value,
    ]),
  )
}

function sentencesOf(labels: object): string[] {
  return Object.values(labels).flatMap((value: unknown) => {
    if (typeof value === 'object' && value !== null) return sentencesOf(value)
    return typeof value === 'string' ? [value] : []
  })
}

describe('the connection', () => {
  const reconnect = vi.fn()
  const chat = (state: Partial<ComponentProps<typeof ConnectionNotice>['chat']>) => ({
    connection: { state: 'open' as const },
    messages: [],
    status: 'ready' as const,
    unconfirmed: new Set<string>(),
    problem: undefined,
    reconnect,
    ...state,
  })
  const retryAt = Date.now() + 3_600_000
  const lost = { state: 'lost' as const, attempt: 9, retryAt }
  const said: AdkUIMessage = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }

  test.each([
    [{}, /^$/],
    [{ connection: lost }, /reconnecting….*What you write is kept/],
    [{ connection: lost, status: 'submitted' as const, messages: [said] }, /Your message will be/],
    [
      { connection: lost, status: 'streaming' as const, messages: [said, says('a', 'One')] },
      /The reply appears/,
    ],
    [{ connection: lost, unconfirmed: new Set(['a']) }, /Your decision will be sent/],
    [
      { problem: { kind: 'disconnected' as const }, messages: [said] },
      /The connection was lost.*Your message/,
    ],
    [{ connection: { state: 'closed' as const } }, /Disconnected/],
  ])('[RE378] one notice says what is lost and what is kept: %j', (state, text) => {
    render(<ConnectionNotice chat={chat(state)} />)
    expect(screen.getByRole('status').textContent).toMatch(text)
  })

  test('[RE378] the notice counts down to the next attempt, and a button tries at once', async () => {
    render(<ConnectionNotice chat={chat({ connection: lost })} />)
    expect(screen.getByText(/^Next attempt in \d+ s$/).getAttribute('aria-hidden')).toBe('true')
    await user.click(screen.getByRole('button', { name: 'Try now' }))
    expect(reconnect).toHaveBeenCalledTimes(1)
  })

  test('[RE10] a message that was not sent is distinguished from a reply that was interrupted', () => {
    const view = render(
      <ProblemCard problem={{ kind: 'disconnected', lost: 'message' }} onRecover={vi.fn()} />,
    )
    expect(view.container.textContent).toContain('Your message was not sent')
    view.rerender(<ProblemCard problem={{ kind: 'disconnected' }} onRecover={vi.fn()} />)
    expect(view.container.textContent).toContain('The reply appears when you reconnect')
  })
})

test('[RE12] messages above the newest six cost no layout while they are out of view', () => {
  const styles = readFileSync(new URL('../../src/react/styles.css', import.meta.url), 'utf8')
  const [selector = '', ...rest] = /(\.adk-message:not\([^{]*)\{([^}]*content-visibility[^}]*)/
    .exec(styles)
    ?.slice(1) ?? ['']
  expect(rest.join('')).toContain('contain-intrinsic-size: auto')
  const messages = Array.from({ length: 8 }, (_, index) => says(`m${index}`, `${index}`))
  const view = render(<MessageList messages={messages} />)
  const skipped = view.container.querySelectorAll(selector.trim())
  expect(Array.from(skipped, ({ textContent }) => textContent)).toEqual([
    'Assistant0',
    'Assistant1',
  ])
})

test('[RE16] the direction of a text follows its content, and token counts are not announced', () => {
  const usage = { inputTokens: 1, outputTokens: 2 }
  const reply = { ...says('a', 'שלום.'), metadata: { usage, modelVersion: 'model-1' } }
  const said: AdkUIMessage = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'مرحبا.' }] }
  render(<MessageList messages={[said, reply]} />)
  for (const text of ['שלום.', 'مرحبا.']) expect(screen.getByText(text).dir).toBe('auto')
  for (const text of ['1 tokens in, 2 out', 'model-1'])
    expect(screen.getByText(text).getAttribute('aria-live')).toBe('off')
})

test.each([
  [
    'en',
    'Steps of Release (iteration 2 of at most 3)',
    'Waiting for a response',
    'Stopped before its end',
  ],
  ['ja', '「Release」の手順（2 回目、最大 3 回）', '回答待ち', '途中で停止'],
] as const)(
  '[RE410] steps are a list with their states as text, in %s',
  (locale, title, waiting, stopped) => {
    const steps = [
      { name: 'draft', state: 'done' },
      { name: 'pay', state: 'waiting' },
      { name: 'report', state: 'pending' },
      { name: 'mail', state: 'stopped' },
    ]
    const data = { agent: 'release', kind: 'loop', iteration: 2, maxIterations: 3, steps }
    const message = {
      id: 'm1',
      role: 'assistant',
      parts: [
        { type: 'data-steps', id: 's1', data },
        {
          type: 'data-steps',
          id: 's2',
          data: { agent: 'other', steps: [{ name: 'x', state: 'y' }] },
        },
      ],
    }
    render(
      <AdkProvider labels={LANGUAGES[locale]}>
        <MessageList messages={[message as AdkUIMessage]} status="ready" />
      </AdkProvider>,
    )
    expect(
      screen.getByRole('figure').querySelector('figcaption')?.textContent?.replace(' （', '（'),
    ).toBe(title)
    const items = screen.getAllByRole('listitem').map((item) => item.textContent)
    expect(items).toHaveLength(4)
    expect(items[1]).toBe(`Pay ${waiting}`)
    expect(items[3]).toBe(`Mail ${stopped}`)
  },
)
