import type { Phrases } from './phrases.ts'

const because = (reason: string | undefined): string =>
  reason === undefined ? '' : `: ${endSentence(reason).slice(0, -1)}`
const endSentence = (text: string): string => (/[.!?…]$/.test(text) ? text : `${text}.`)
const upperFirst = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
const list = (items: readonly string[]): string =>
  items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1) ?? ''}`

export const english: Phrases = {
  join: (sentences) => sentences.join(' '),
  list,

  askRecipient: (money) => `Gladly. Who should receive the ${money}?`,
  askAmount: (recipient) => `Gladly. How much should I send to ${recipient}?`,
  askPayment: 'Gladly. Who should receive the money, and how much should I send?',
  askPlace: 'Which city would you like the weather for?',
  tripNeedsChat: 'I can plan a trip in the chat mode, and not in a conversation by voice.',
  askTrack: 'Which track would you like, 1 or 2?',
  cannotStopMusic:
    'I can only change the track, I cannot stop the music. Its own player has a button for that. Shall I play track 1 or track 2?',
  doesNotFit: (name, keys) =>
    `I did not call ${name}: it does not accept the value I have for ${list(keys)}.`,
  needsArguments: (name, keys) =>
    keys.length === 0
      ? `To call ${name}, write ${name}().`
      : `To call ${name}, add its arguments, for example: ${name} ${keys.map((key) => `${key}=…`).join(' ')}`,
  noTool: (name) => `I cannot do that here: the tool ${name} is not available in this chat.`,

  needsApproval: (payments) => `I need your approval for ${list(payments)}.`,
  payment: ({ money, recipient }) => `the payment of ${money} to ${recipient}`,
  weatherLookup: (place) => `the weather lookup for ${place}`,
  locating: 'the location request',
  asking: 'my question',
  delegation: 'the request to the accountant',
  plan: 'the plan',
  planApproved: 'The plan is approved.',
  notebook: 'the request to the notebook',
  readingCalendar: 'the look at your calendar',
  trackChange: (track) => `the change to track ${track}`,
  otherCall: (name) => `the call of ${name}`,

  failed: (action, reason) => `${upperFirst(action)} did not succeed${because(reason)}.`,
  denied: (action, reason) =>
    reason === undefined
      ? `${upperFirst(action)} was not carried out, because it was rejected.`
      : `${upperFirst(action)} was not carried out, because it was rejected. Reason: “${reason}”.`,
  pending: (action) => `${upperFirst(action)} has not happened yet: it is waiting for a decision.`,
  expired: (action) =>
    `${upperFirst(action)} was not carried out, because the request expired before it was decided.`,
  cancelled: (action, reason) =>
    `${upperFirst(action)} was cancelled and not carried out${because(reason)}.`,
  unknown: (action, reason) =>
    `I do not know whether ${action} was carried out${because(reason)}. Please check before trying again.`,
  stillWaiting: (calls) => `Still waiting: ${list(calls)}.`,
  notGoingOn: 'I therefore did not go on with the next step.',

  sent: (payments) =>
    `I sent ${list(
      payments.map(
        ({ money, recipient, transaction }) =>
          `${money} to ${recipient}${transaction === undefined ? '' : ` (transaction ${transaction})`}`,
      ),
    )}.`,
  balance: (money) => `Your remaining balance is ${money}.`,
  weather: ({ place, temperature, condition, humidity, feelsLike, wind }, spoken) => {
    const sky = condition === undefined ? '' : ` and ${condition.toLowerCase()}`
    const air = humidity === undefined ? '' : `, with ${String(humidity)}% humidity`
    const extras = [
      ...(feelsLike === undefined ? [] : [`feels like ${String(feelsLike)} °C`]),
      ...(wind === undefined ? [] : [`wind ${String(wind)} m/s`]),
    ]
    const more = spoken || extras.length === 0 ? '' : ` (${extras.join(', ')})`
    return `It is ${String(temperature)} °C${sky} in ${place}${air}${more}.`
  },
  position: ({ latitude, longitude, accuracy }) => {
    const north = `${Math.abs(latitude).toFixed(4)}° ${latitude < 0 ? 'S' : 'N'}`
    const east = `${Math.abs(longitude).toFixed(4)}° ${longitude < 0 ? 'W' : 'E'}`
    const within =
      accuracy === undefined ? '' : `, accurate to about ${String(Math.round(accuracy))} m`
    return `You are at ${north}, ${east}${within}.`
  },
  calendar: (owner, events) =>
    events.length === 0
      ? `There is nothing in ${owner}’s calendar today.`
      : `Today in ${owner}’s calendar: ${list(events.map(({ time, title }) => `${time} ${title}`))}.`,
  tableNoted: (guests, date, details) =>
    `I noted a table for ${String(guests)} on ${[date, ...details].join(', ')}. This demo has no restaurant to call.`,
  trackPlays: (track) => `The music is now track ${track}.`,
  answered: (name, rendering) =>
    rendering === '' ? `${name} returned nothing.` : `${name} returned ${endSentence(rendering)}`,
  edited: (changes) =>
    changes.length === 0
      ? 'The request was edited before it ran.'
      : `The request was edited before it ran: ${changes.join(', ')}.`,
  note: (note) =>
    /^sample data\b/i.test(note) ? 'This is sample data.' : `Note: ${endSentence(note)}`,

  greeting: (name) =>
    `Hello${name === undefined ? '' : `, ${name}`}! I am the Gemini emulator's demo model, not a real model. How can I help?`,
  leaveIt: 'All right, I will leave it.',
  thanks: 'You are welcome! Is there anything else I can do?',
  goodbye: 'Goodbye! It was nice talking to you.',
  identity:
    'I am the demo model of a Gemini emulator, not a real model: I run offline and answer by fixed rules, so that everything around me can be tried without a key.',
  help: (spoken, tools) => {
    if (tools.length === 0) {
      return 'I am an emulator, not a real model, and this chat gives me no tools. Ask me for a markdown example, or to draw a picture.'
    }
    return spoken
      ? `I am an emulator, not a real model. You could say: ${tools.slice(0, 2).join(' Or: ')}`
      : `I am an emulator, not a real model, but you can try:\n\n${tools.map((text) => `- ${text}`).join('\n')}\n- Show me markdown\n- Draw a picture of the sea`
  },
  niceToMeet: (name) => `Nice to meet you, ${name}! I will remember your name in this chat.`,
  yourName: (name) =>
    name === undefined
      ? 'You have not told me your name yet. What is it?'
      : `Your name is ${name}.`,
  knownBalance: (money) =>
    money === undefined
      ? 'I have not seen your balance yet; I learn it when a payment is made.'
      : `After the last payment your balance was ${money}.`,
  markdown: `## Markdown at a glance

Text can be **bold**, *italic* or \`code\`.

1. Lists can be numbered
2. or nested
   - like this

| Tool | Runs | Approval |
| --- | --- | --- |
| \`get_weather\` | on the server | no |
| \`process_payment\` | on the server | yes |

\`\`\`ts
const greet = (name: string): string => \`Hello, \${name}!\`
\`\`\`

> I am an emulator, so this example is always the same.
`,
  markdownSpoken: 'Markdown is for reading. Ask me again in a written chat and I will show you.',
  thought: (gist) =>
    `The request is “${gist}”. I look for a tool that fits, then for what can be said without one. No tool is needed, so I answer in steps.`,
  reasoned: (gist) =>
    `Let me take “${gist}” step by step. First, I read what is asked. Second, I look for a tool that fits. Third, I answer with what I have. I am an emulator, so I cannot reason further than that.`,
  received: (files) =>
    `Thank you, I received ${list(files)}. I am an emulator: I can measure it, but not see what is in it.`,
  mostly: (colour) => `mostly ${colour}`,
  picture: (subject) => `Here is ${subject}, drawn by the demo model.`,
  echo: (gist, example) =>
    `You said “${gist}”. I am an emulator, not a real model, so I can only answer a few things. Try: ${example}`,
  nothingSaid: 'I am listening. I am an emulator, not a real model; ask me what I can do.',
  examples: [
    { tool: 'get_weather', text: 'What is the weather in Tokyo and London?' },
    { tool: 'process_payment', text: 'Send $30 to Alice and $40 to Bob' },
    { tool: 'get_location', text: 'Where am I?' },
    { tool: 'change_bgm', text: 'Change the music to track 2' },
    { tool: 'get_calendar', text: 'Show my calendar' },
    { tool: 'notebook', text: 'Delete my old notes' },
    { tool: 'transfer_to_agent', text: 'Plan a weekend in Kyoto' },
    { tool: '', text: 'Show me markdown' },
  ],
}
