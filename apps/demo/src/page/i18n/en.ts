import { AudioLines, CircleCheck, Users } from 'lucide-react'

import type { DemoLabels } from './labels.ts'

export const en: DemoLabels = {
  page: {
    tagline: 'What would you like to do?',
    intro: 'Approve what an agent does: exactly once, from anywhere, even while you talk.',
    emulated:
      'Demo model: replies are scripted for these examples. Set GOOGLE_API_KEY to use Gemini.',
    emulatedVoice:
      'The built-in emulator does not understand speech. It plays a demo conversation, whatever you say.',
    toolNames: {
      assistant: 'Assistant',
      get_weather: 'Weather',
      process_payment: 'Payment',
      propose_plan: 'Plan',
      get_location: 'Location',
      change_bgm: 'Music',
      accountant: 'Accountant',
      get_calendar: 'Calendar',
      notebook: 'Notebook',
      notes: 'Notebook',
      notes_add: 'Add a note',
      notes_list: 'List notes',
      notes_delete: 'Delete notes',
      weekend_trip: 'the weekend trip',
      book_trip: 'Trip',
      plan: 'Plan',
      book: 'Book',
      confirm: 'Confirm',
    },
    argumentNames: {
      location: 'Place',
      track: 'Track',
      amount: 'Amount',
      recipient: 'Recipient',
      currency: 'Currency',
      description: 'Description',
      titles: 'Titles',
      place: 'Place',
      nights: 'Nights',
      price: 'Price',
    },
    starts: [
      {
        icon: CircleCheck,
        title: 'Approve a payment',
        explanation: 'The call waits for you, then runs exactly once.',
        text: 'Send $50 to Alice',
      },
      {
        icon: Users,
        title: 'Two approvers',
        explanation: 'Over $500, a second person approves: on a phone, by QR code.',
        text: 'Send $600 to Alice',
      },
      {
        icon: AudioLines,
        title: 'Talk and approve',
        explanation: 'Speak with the assistant and decide while you talk.',
      },
    ],
    suggestions: [
      {
        title: 'Approvals and questions',
        suggestions: [
          { text: 'Send $30 to Alice and $40 to Bob' },
          {
            text: 'Make a plan: send $20 to Alice, $30 to Bob and $40 to Carol',
            modes: ['sse'],
          },
          { text: 'Ask the accountant to send $20 to Alice', modes: ['sse'] },
          { text: 'Plan a weekend in Kyoto', modes: ['sse'] },
          { text: 'Delete my old notes', modes: ['sse'] },
          { text: 'Reserve a table for me', modes: ['sse', 'live'] },
          { text: 'Show my calendar', modes: ['sse', 'live'], needsSignIn: true },
        ],
      },
      {
        title: 'Tools',
        isMore: true,
        suggestions: [
          { text: 'What is the weather in Tokyo?' },
          { text: 'Where am I?' },
          { text: 'Write a note for me', modes: ['sse'] },
          { text: 'Play track 2' },
          { text: 'Send $20 to Alice, then $30 to Bob' },
        ],
      },
      {
        title: 'Rich replies',
        isMore: true,
        suggestions: [
          { text: 'Draw a picture of a lighthouse' },
          { text: 'What size and colour is this picture?', needsPicture: true },
          { text: 'Think step by step: which is larger, 9.9 or 9.11?' },
          { text: 'Search for the history of tea' },
        ],
      },
      {
        title: 'Stop and errors',
        isMore: true,
        suggestions: [
          { text: 'Write a long story that I can stop' },
          { text: 'Show me what a rate limit looks like' },
        ],
      },
    ],
  },
  descriptions: {
    payment: (money, recipient) => `Send ${money} to ${recipient}`,
    paid: (money, recipient) => `Sent ${money} to ${recipient}`,
    notPaid: (money, recipient) => `Not sent: ${money} to ${recipient}`,
    plan: (payments) => `Plan of ${payments} payments`,
    location: 'Share your location with the assistant',
    located: 'Shared your location with the assistant',
    notLocated: 'Location not shared',
    trip: (place, nights, price) => `Book ${nights} nights in ${place} for ${price}`,
    tripBooked: (place, nights, price) => `Booked ${nights} nights in ${place} for ${price}`,
    notes: (count) => (count === 1 ? 'Delete 1 note' : `Delete ${count} notes`),
    notesDeleted: (count) => (count === 1 ? 'Deleted 1 note' : `Deleted ${count} notes`),
  },
  weather: {
    degrees: (value) => `${value} °C`,
    feelsLike: (value) => `Feels like ${value} °C`,
    humidity: (value) => `Humidity ${value}%`,
    wind: (value) => `Wind ${value} m/s`,
    sample: 'Sample data',
    // In English, the report has them.
    conditions: {},
  },
  music: {
    label: 'Music',
    off: 'Off',
    track: (track) => `Track ${track}`,
    mute: (track) => `Mute track ${track}`,
  },
  direct: {
    name: 'Gemini direct',
    connection: 'Gemini direct',
    explanation: 'Gemini without the agent, with the AI SDK only, for comparison. Not stored.',
  },
  approver: {
    cancel: 'Cancel',
    is: 'This browser is the second approver of large payments.',
    how: 'Large payments need a second approver. To try this, open the following address in another browser or a private window, and enter the code from the terminal:',
    title: 'Second approver',
    code: 'Code from the terminal',
    enter: 'Become second approver',
    wrong: 'This is not the code that the server printed at startup.',
  },
}
