import { render, screen, waitFor } from '@testing-library/react'
import { userEvent } from '@testing-library/user-event'
import { afterEach, expect, test, vi } from 'vitest'

import type { SignInRequest } from '../../src/client/api/adk-api.ts'
import type { PendingApproval } from '../../src/protocol/server-views.ts'
import { AdkProvider, ApprovalInbox, type Decision, MessageList } from '../../src/react/index.ts'
import { type Language, LANGUAGES } from './support/languages.ts'
import { answer, approvalPart, payment } from './support/messages.ts'

const SIGN_IN = {
  provider: 'example',
  label: 'Example',
  type: 'openIdConnect',
  scopes: ['mail.read'],
} as const
const URL_OF_PROVIDER = 'https://example.com/authorize?state=1'

interface Shown {
  readonly requests: SignInRequest[]
  readonly decisions: Decision[]
}

interface ShowOptions {
  readonly signIn?: object
  readonly respond?: () => Promise<string | undefined>
  readonly locale?: Language
  readonly state?: 'requested' | 'approved'
}

/** Shows the card of a call that waits for a sign-in. */
function show(options: ShowOptions = {}): Shown {
  const { signIn, respond = async () => URL_OF_PROVIDER, locale = 'en', state } = options
  const [requests, decisions]: [SignInRequest[], Decision[]] = [[], []]
  const api = {
    signIn: (_id: string, request: SignInRequest = {}) => {
      requests.push(request)
      return respond()
    },
  }
  const part = approvalPart({
    kind: 'sign-in',
    signIn: { ...SIGN_IN, ...signIn },
    ...(state && { state }),
  })
  const call = payment({ state: 'input-available', approval: undefined } as object)
  render(
    <AdkProvider labels={LANGUAGES[locale]} api={api}>
      <MessageList
        messages={[answer(call, part)]}
        status="ready"
        onDecide={(_id, decision) => void decisions.push(decision)}
      />
    </AdkProvider>,
  )
  return { requests, decisions }
}

const user = userEvent.setup()

afterEach(() => vi.restoreAllMocks())

test('[RE430] the card says who asks for which access, and opens the provider in another window', async () => {
  const popup = { location: { href: '' }, opener: {}, close: vi.fn() }
  const open = vi.spyOn(window, 'open').mockReturnValue(popup as unknown as Window)
  const { requests } = show()
  const card = screen.getByRole('group', { name: 'Sign-in needed: Example' })
  expect(card.textContent).toContain('your account at Example for “Process payment”')
  expect(card.textContent).toContain('mail.read')
  screen.getByRole('button', { name: 'Sign in to Example' }).focus()
  await user.keyboard('{Enter}')
  await waitFor(() => expect(popup.location.href).toBe(URL_OF_PROVIDER))
  // The provider cannot navigate the page.
  expect([open.mock.calls[0]?.[0], popup.opener, requests]).toEqual(['', null, [{}]])
  expect(screen.getByText(/Sign in in the other window/)).toBeTruthy()
  await user.click(screen.getByRole('button', { name: 'Use another account' }))
  expect(requests.at(-1)).toEqual({ prompt: 'login' })
})

test('[RE431] without a window there is a link, an error says what to do, and declining is a denial', async () => {
  vi.spyOn(window, 'open').mockReturnValue(null)
  let attempts = 0
  const respond = async (): Promise<string> => {
    attempts += 1
    if (attempts === 1) throw new Error('Example cannot be reached.')
    return URL_OF_PROVIDER
  }
  const { decisions } = show({ respond })
  const start = screen.getByRole('button', { name: 'Sign in to Example' })
  await user.click(start)
  expect((await screen.findByText(/could not begin/)).textContent).toContain('Try again')
  await user.click(start)
  const link = await screen.findByRole('link', { name: 'Open the sign-in of Example' })
  expect([link.getAttribute('href'), link.getAttribute('rel')]).toEqual([
    URL_OF_PROVIDER,
    'noopener noreferrer',
  ])
  await user.click(screen.getByRole('button', { name: 'Decline' }))
  expect(decisions).toEqual([{ approved: false }])
})

test('[RE432] an API key is entered in a hidden field that keeps nothing', async () => {
  const { requests } = show({
    signIn: { type: 'apiKey', scopes: [], help: 'In the settings.' },
    respond: async () => undefined,
  })
  const field = screen.getByLabelText<HTMLInputElement>('API key of Example')
  expect([field.type, screen.getByText('In the settings.').closest('p')?.id]).toEqual([
    'password',
    field.getAttribute('aria-describedby'),
  ])
  await user.type(field, ' secret {Enter}')
  expect([requests, field.value]).toEqual([[{ apiKey: 'secret' }], ''])
})

test('[RE430] the card is in Japanese too, and shows the outcome', () => {
  show({ locale: 'ja' })
  expect(screen.getByRole('button', { name: 'Example にサインイン' })).toBeTruthy()
  show({ state: 'approved' })
  expect(screen.getAllByRole('status').at(-1)?.textContent).toContain('Signed in')
  // Nothing is needed any more.
  expect(screen.getByRole('group', { name: 'Sign-in: Example' })).toBeTruthy()
})

test('[RE430] the inbox has the same form', async () => {
  const requests: SignInRequest[] = []
  const approval: PendingApproval = {
    id: 'approval-1',
    state: 'requested',
    toolName: 'read_mail',
    args: {},
    kind: 'sign-in',
    signIn: { ...SIGN_IN, type: 'apiKey' },
    requestedAt: Date.now(),
    deadline: Date.now() + 90_000,
    approvals: { given: 0, needed: 1 },
    voted: false,
    version: 0,
    step: 0,
    own: true,
  }
  const signIn = async (_id: string, request: SignInRequest = {}): Promise<undefined> => {
    requests.push(request)
  }
  render(
    <AdkProvider api={{ signIn }}>
      <ApprovalInbox approvals={[approval]} onDecide={() => undefined} />
    </AdkProvider>,
  )
  await user.type(screen.getByLabelText('API key of Example'), 'key{Enter}')
  expect(requests).toEqual([{ apiKey: 'key' }])
  expect(screen.queryByRole('button', { name: 'Approve' })).toBeNull()
})
