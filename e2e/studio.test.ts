import { type BaseLlm, FunctionTool, LlmAgent } from '@google/adk'
import { webPush } from 'adk-stream-protocol/notify'
import { apiKey } from 'adk-stream-protocol/server'
import { expect, test } from 'vitest'
import { z } from 'zod'

import {
  newVapid,
  startPushService,
} from '../packages/adk-stream-protocol/test/notify/support/push-service.ts'
import { isLong } from '../test/support/long-run.ts'
import { longTest } from '../test/support/long-test.ts'
import { findViolations } from './support/axe-violations.ts'
import { chatPage } from './support/chat-page.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { openTestStudio } from './support/test-studio.ts'
import { findUntranslatedTexts } from './support/untranslated-texts.ts'

/** A tool with the name of one of the demo's, which does something else. */
function createPayrollAgent(calls: unknown[], model: BaseLlm): LlmAgent {
  return new LlmAgent({
    name: 'payroll',
    description: 'Prepares the payroll of the month.',
    model,
    tools: [
      new FunctionTool({
        name: 'process_payment',
        description: 'Files a payment slip. No money is sent.',
        parameters: z.object({ amount: z.number(), recipient: z.string() }),
        execute: (input) => {
          calls.push(input)
          return { filed: true }
        },
      }),
    ],
  })
}

const CALL = '[[call process_payment {"amount":30,"recipient":"Alice"}]][[then]][[say Filed.]]'

const CARDS = [
  ['en-US', 'Approve', /Send \$|Sent \$|Payment$|Place/],
  ['ja-JP', '承認', /送金|ドル/],
] as const

test.each(isLong ? CARDS : CARDS.slice(0, 1))(
  '[SD1303] [DV1675] a foreign tool has its own words, also if the demo has one of the same name, in a page without an inspector, in %s',
  async (locale, approve, words) => {
    const calls: unknown[] = []
    const [name, description] = ['payroll', 'Prepares the payroll of the month.']
    await using studio = await openTestStudio({
      agents: (model) => createPayrollAgent(calls, model),
      bridge: { approvals: { process_payment: true } },
      info: () => ({ inspector: false, agents: [{ name, description }] }),
    })
    const page = await studio.openPage({ locale })
    const { send, tool } = chatPage(page)
    await page.getByText(`${name} · ${description}`).waitFor()
    await send(CALL)
    const card = tool('process_payment')
    const button = card.getByRole('button', { name: approve, exact: true })
    await button.waitFor()
    expect(await card.innerText()).not.toMatch(words)
    await page.keyboard.press('Alt+KeyL')
    expect(await page.locator('.inspector-body, [data-shows=inspector]').count()).toBe(0)
    await takeScreenshot(page, `studio-card-${locale}`)
    expect(await findViolations(page)).toEqual([])
    await button.click()
    await page.getByText('Filed.', { exact: true }).waitFor()
    expect(calls).toEqual([{ amount: 30, recipient: 'Alice' }])
    expect(await card.innerText()).not.toMatch(words)
  },
)

/** What the service worker of a page has shown, and which page a click has opened. */
interface PushProbe {
  readonly shown: { readonly title: string; readonly data: string }[]
  opened?: string
}

/** Runs in a page: the browser of the tests has no push service. */
function replacePushService(subscription: object): void {
  const unsubscribe = async (): Promise<boolean> => {
    current = null
    return true
  }
  const created = { ...subscription, unsubscribe }
  let current = localStorage.getItem('push-address') === null ? null : created
  Object.assign(PushManager.prototype, {
    subscribe: async () => (current = created),
    getSubscription: async () => current,
  })
}

test('[NT1823] [NT1825] a browser is told without arguments while no page is open, a click opens the approval, and the inspector shows who was told', async () => {
  await using service = await startPushService()
  const browser = service.browser('phone')
  const { publicKey, privateKey } = newVapid()
  const phone = webPush({
    vapid: { publicKey, privateKey },
    subject: 'mailto:ops@example.com',
    allowPrivateNetwork: true,
  })
  await using studio = await openTestStudio({
    agents: (model) => createPayrollAgent([], model),
    bridge: {
      approvals: { process_payment: { title: 'Payslip', severity: 'medium' } },
      notify: { channels: { phone } },
    },
    info: () => ({ push: 'phone' }),
  })
  const page = await studio.openPage({ permissions: ['notifications'] })
  await page.evaluate(replacePushService, browser.subscription)
  const settings = page.getByRole('button', { name: 'Settings' })
  const push = page.getByRole('radio', { name: 'Always' })
  await settings.press('Enter')
  await push.press('Space')
  await expect.poll(() => push.isChecked()).toBe(true)
  await takeScreenshot(page, 'studio-push')
  expect(await findViolations(page)).toEqual([])
  await page.keyboard.press('Escape')
  const { send } = chatPage(page)
  await send(`${CALL.replace('[[then]]', '')}${CALL.replace('30', '40')}`)
  await expect.poll(() => service.pushed.length).toBe(2)
  const texts = service.pushed.map(({ body }) => browser.decrypt(body))
  const [worker] = page.context().serviceWorkers()
  if (!worker) throw new Error('There is no service worker.')
  // The headless shell shows no notifications.
  await worker.evaluate(() => {
    const probe: PushProbe = { shown: [] }
    Object.assign(globalThis, { probe })
    Object.assign(ServiceWorkerRegistration.prototype, {
      showNotification: async (title: string, options: { data: string }) =>
        void probe.shown.push({ title, ...options }),
    })
    const clients: unknown = Reflect.get(globalThis, 'clients')
    Object.assign(Object.getPrototypeOf(clients) as object, {
      openWindow: async (url: string) => void (probe.opened = url),
    })
  })
  const session = await page.context().newCDPSession(page)
  const registered = new Promise<string>((resolve) => {
    session.on('ServiceWorker.workerRegistrationUpdated', ({ registrations }) => {
      const [first] = registrations
      if (first) resolve(first.registrationId)
    })
  })
  await session.send('ServiceWorker.enable')
  const message = { origin: studio.url, registrationId: await registered }
  const [, second] = texts
  const data = JSON.stringify(second)
  await session.send('ServiceWorker.deliverPushMessage', { ...message, data })
  const readProbe = () =>
    worker.evaluate(() => (globalThis as unknown as { probe: PushProbe }).probe)
  await expect.poll(async () => (await readProbe()).shown).toHaveLength(1)
  const approvalId = String(second?.['approvalId'])
  const { shown } = await readProbe()
  expect(shown).toMatchObject([
    { title: 'Payslip', body: 'Needs approval · severity medium', tag: approvalId },
  ])
  expect(JSON.stringify([shown, texts])).not.toMatch(/Alice|recipient|amount/)
  await worker.evaluate(() => {
    const [notification] = (globalThis as unknown as { probe: PushProbe }).probe.shown
    const click = new Event('notificationclick')
    dispatchEvent(
      Object.assign(click, { waitUntil() {}, notification: { ...notification, close() {} } }),
    )
  })
  await expect.poll(async () => (await readProbe()).opened).toContain(approvalId)
  const opened = await page.context().newPage()
  await opened.addInitScript(replacePushService, browser.subscription)
  await opened.goto(new URL((await readProbe()).opened ?? '', studio.url).href)
  const open = opened.locator('.adk-inbox-line[aria-expanded=true]')
  await open.waitFor()
  expect(await open.count()).toBe(1)
  const decided = await page.evaluate(async () => (await fetch('/approvals')).json() as unknown)
  expect(decided).toMatchObject({ approvals: { length: 2 } })
  await takeScreenshot(opened, 'studio-push-opened')
  await opened.close()

  await page.getByRole('button', { name: 'Show inspector' }).click()
  const row = page.locator('.row[data-lane=wait]').first()
  await row.locator('summary').first().press('Enter')
  const log = row.locator('.row-details')
  await log.getByText('Who was told').press('Enter')
  await log.getByText(/phone.*Request · sent/).waitFor()
  await takeScreenshot(page, 'studio-notices')
  await settings.press('Enter')
  await page.getByRole('radio', { name: 'Off' }).press('Space')
  await expect
    .poll(() =>
      page.evaluate(async () => (await fetch('/channels/phone/addresses')).json() as unknown),
    )
    .toMatchObject({ addresses: [] })
})

test('[DG1824] a person names somebody on the page of approvals, who sees and decides their approvals there', async () => {
  const people = ['hanako', 'mari', 'taro'].map((id) => ({ id, name: id, roles: [] }))
  const calls: unknown[] = []
  await using studio = await openTestStudio({
    agents: (model) => createPayrollAgent(calls, model),
    authenticate: apiKey({
      hanako: { id: 'hanako' },
      mari: { id: 'mari', roles: ['manager'] },
      taro: { id: 'taro' },
    }),
    bridge: {
      approvals: { process_payment: { deciders: { roles: ['manager'] }, mayDelegate: true } },
      delegation: { allow: () => true },
    },
    info: (id) => ({
      people,
      ...people.filter((each) => each.id === id).map((person) => ({ person }))[0],
    }),
  })
  const open = (id: string) => studio.openPage({ extraHTTPHeaders: { 'x-api-key': id } })
  const openApprovals = async (id: string) => {
    const page = await open(id)
    await page.goto(`${studio.url}/?view=approvals`)
    return page
  }
  const [mari, taro] = [await openApprovals('mari'), await openApprovals('taro')]
  const form = mari.getByRole('region', { name: 'While you are away' })
  await form.getByLabel('Who decides in your place').selectOption('taro')
  await form.getByRole('button', { name: 'Delegate' }).press('Enter')
  await form.getByText('taro decides in your place').waitFor()
  expect(await form.getByLabel('Who decides in your place').locator('option').count()).toBe(3)
  await takeScreenshot(mari, 'studio-delegation')
  expect(await findViolations(mari)).toEqual([])
  const hanako = await open('hanako')
  await chatPage(hanako).send(CALL)
  // The feed of the delegate reports it.
  const received = taro.getByRole('region', { name: 'While you are away' })
  await received.getByText('You decide in the place of mari').waitFor()
  await takeScreenshot(taro, 'studio-delegate')
  await received.getByRole('button', { name: 'Approve', exact: true }).click()
  await hanako.getByText('Filed.', { exact: true }).waitFor()
  expect(calls).toEqual([{ amount: 30, recipient: 'Alice' }])
})

test('[SD1973] an API key is asked for in Japanese, a wrong one again, and the call continues with the right one', async () => {
  const config = { credentialKey: 'maps', authScheme: { type: 'apiKey' } } as const
  const keys: unknown[] = []
  const look = new FunctionTool({
    name: 'look_up',
    description: 'Looks up a place.',
    parameters: z.object({}),
    execute: (_input, context) => {
      const key = context?.getAuthResponse(config)?.apiKey
      if (key === undefined) context?.requestCredential(config)
      else keys.push(key)
      return { found: key !== undefined }
    },
  })
  await using studio = await openTestStudio({
    agents: (model) => new LlmAgent({ name: 'guide', model, tools: [look] }),
    bridge: {
      signIn: {
        baseUrl: 'http://localhost:1',
        providers: {
          maps: { type: 'apiKey', label: '地図', check: (key) => key === 'good' },
        },
      },
    },
    info: () => ({ signIn: true }),
  })
  const page = await studio.openPage({ locale: 'ja-JP' })
  await chatPage(page).send('[[call look_up {}]][[then]][[say 見つかりました。]]')
  const card = page.locator('.adk-sign-in')
  const field = card.getByLabel('地図 の API キー')
  await field.fill('wrong')
  await field.press('Enter')
  const failure = card.locator('.adk-failure')
  await failure.waitFor()
  await takeScreenshot(page, 'studio-api-key-ja')
  expect(await findViolations(page)).toEqual([])
  expect(await findUntranslatedTexts(page, [/^look_up$|ADK Stream Protocol$/])).toEqual([])
  expect(await field.inputValue()).toBe('')
  await field.fill('good')
  await field.press('Enter')
  await page.getByText('見つかりました。', { exact: true }).waitFor()
  expect(keys).toEqual(['good'])
  expect(await page.content()).not.toMatch(/wrong|good/)
})

const PARAMETERS = {
  type: 'object',
  properties: {
    amount: { type: 'number', description: 'In US dollars.' },
    recipient: { type: 'string' },
    tags: { type: 'array', items: { type: 'string' } },
  },
  required: ['amount', 'recipient'],
}

const GRAPH = {
  nodes: [
    { id: 'n0', name: 'payroll', kind: 'agent', model: 'gemini-2.5-flash' },
    { id: 'n1', name: 'process_payment', kind: 'tool' },
  ],
  edges: [{ from: 'n0', to: 'n1' }],
} as const

const PAYROLL = {
  name: 'payroll',
  description: 'Prepares the payroll of the month.',
  tools: [
    {
      name: 'process_payment',
      description: 'Files a payment slip. No money is sent.',
      parameters: PARAMETERS,
      approval: 'always' as const,
    },
  ],
  graph: { nodes: [...GRAPH.nodes], edges: [...GRAPH.edges] },
}

/** The panel of the inspector. The first test looks for violations on the whole page. */
const PANEL = '[role=tabpanel]'

const PHONE = { viewport: { width: 375, height: 740 }, hasTouch: true, isMobile: true }

const TOOL_TEXTS = {
  'en-US': {
    inspector: 'Show inspector',
    tab: 'Agent',
    run: 'Run',
    waiting: 'waiting for approval',
  },
  'ja-JP': {
    inspector: 'インスペクターを表示',
    tab: 'エージェント',
    run: 'を実行',
    waiting: '承認待ち',
  },
} as const

const DEVICES = [
  ['en-US', {}],
  ['ja-JP', PHONE],
] as const

longTest.each(DEVICES)(
  '[SD1306] [SD1307] a tool is run from its form, and the graph shows that it waits, in %s',
  async (locale, device) => {
    const texts = TOOL_TEXTS[locale]
    const calls: unknown[] = []
    await using studio = await openTestStudio({
      agents: (model) => createPayrollAgent(calls, model),
      bridge: { approvals: { process_payment: true } },
      info: () => ({ agents: [PAYROLL] }),
    })
    const page = await studio.openPage({ locale, ...device })
    const openTab = async () => {
      await page.getByRole('button', { name: texts.inspector }).click()
      await page.getByRole('tab', { name: texts.tab }).click()
    }
    await page.getByText(PAYROLL.description).waitFor()
    await openTab()
    const panel = page.getByRole('tabpanel')
    await panel.locator('summary', { hasText: 'process_payment' }).click()
    await panel.getByLabel('amount').fill('30')
    await panel.getByLabel('tags').fill('[1')
    await panel.getByLabel('recipient').fill('Alice')
    const run = panel.getByRole('button', { name: texts.run })
    await run.click()
    // The browser refuses to send what is not JSON.
    expect(await panel.locator('textarea:invalid').count()).toBe(1)
    await panel.getByLabel('tags').fill('')
    await takeScreenshot(page, `studio-tool-form-${locale}`)
    expect(await findViolations(page, PANEL)).toEqual([])
    await run.click()
    const { tool } = chatPage(page)
    await tool('process_payment').getByText('Alice').waitFor()
    expect(calls).toEqual([])
    if ('isMobile' in device) await openTab()
    const node = panel.locator('.agent-node', { hasText: 'process_payment' })
    await node.getByText(texts.waiting).waitFor()
    await takeScreenshot(page, `studio-graph-${locale}`)
    expect(await findViolations(page, PANEL)).toEqual([])
  },
)
