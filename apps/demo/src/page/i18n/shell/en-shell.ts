import type { ShellLabels } from './shell-labels.ts'

export const enShell: ShellLabels = {
  close: 'Close',
  cancel: 'Cancel',
  chats: {
    label: 'Chats',
    show: 'Show chats',
    hide: 'Hide chats',
    search: 'Search chats',
    none: 'Your chats appear here.',
    noneFound: 'No matching chats.',
    today: 'Today',
    earlier: 'Earlier',
    running: 'Reply in progress',
    pending: (count) => (count === 1 ? '1 pending approval' : `${count} pending approvals`),
    options: (title) => `Options for “${title}”`,
    rename: 'Rename',
    newName: 'New name',
    delete: 'Delete',
    deleteTitle: 'Delete this chat?',
    deleteText: (title) => `“${title}” and all its messages will be deleted permanently.`,
    problems: {
      list: 'The chats could not be loaded.',
      rename: 'The chat could not be renamed.',
      delete: 'The chat could not be deleted.',
    },
    untitled: 'Untitled chat',
  },
  mode: {
    label: 'Mode',
    names: { sse: 'Chat', live: 'Talk', direct: 'Gemini direct' },
    connection: 'Connection',
    connections: { sse: 'ADK · SSE', live: 'ADK · Live', direct: 'Gemini direct' },
    explanations: {
      sse: 'Type to chat with the agent. Replies are streamed over HTTP.',
      live: 'Talk or type to the same agent over a WebSocket. You can interrupt it.',
      direct: 'Gemini without the agent, with the AI SDK only, for comparison. Not stored.',
    },
  },
  instance: {
    name: (name) => `Instance ${name}`,
    explanation: 'The server instance that sent the last response',
  },
  inspector: {
    title: 'Inspector',
    show: 'Show inspector',
    hide: 'Hide inspector',
    messages: 'Messages as JSON',
  },
  settings: {
    title: 'Settings',
    language: 'Language',
    theme: 'Theme',
    themes: { system: 'System', light: 'Light', dark: 'Dark' },
    notifications: 'Notifications',
    notificationsOff: 'Off',
    notificationsOn: 'When this page is hidden',
    notificationsBlocked: 'Allow notifications for this page in the browser settings.',
    music: 'Music',
    musicOff: 'Off',
    shortcuts: 'Keyboard shortcuts',
  },
  shortcuts: {
    title: 'Keyboard shortcuts',
    names: {
      newChat: 'New chat',
      composer: 'Write a message',
      chats: 'Show or hide chats',
      inbox: 'Show pending approvals',
      nextApproval: 'Go to the next approval',
      inspector: 'Show or hide inspector',
      inspect: 'Show this message or card in the inspector',
      help: 'Show keyboard shortcuts',
      send: 'Send the message',
      newLine: 'New line',
      close: 'Close dialog or menu',
    },
  },
  composer: {
    attach: 'Add pictures',
    pictures: 'Pictures to send',
    remove: (name) => `Remove ${name}`,
    drop: 'Drop pictures here',
    problems: {
      type: (name) => `${name} is not a PNG, JPEG, WebP or GIF picture.`,
      size: (name, max) => `${name} is larger than ${max} MB. Choose a smaller picture.`,
      total: (name) => `${name} makes this message too large. Send it in the next one.`,
      count: (max) => `A message can have up to ${max} pictures.`,
      unreadable: (name) => `${name} could not be read.`,
    },
  },
  actions: {
    copy: 'Copy',
    copied: 'Copied',
    failed: 'The browser blocked copying',
    edit: 'Edit and send again',
    editLabel: 'Edit the message',
    editHint: 'Replaces this message and everything after it.',
    cancel: 'Cancel',
    resend: 'Send again',
  },
  voice: {
    needsLive: 'Talk',
    captions: 'Captions',
    microphone: 'Microphone',
    waiting: 'No connection. Reconnecting…',
    emulated:
      'The built-in emulator does not understand speech. It plays a demo conversation, whatever you say.',
  },
  model: {
    label: 'Model',
    emulated:
      'Demo model: replies are scripted for these examples. Set GOOGLE_API_KEY to use Gemini.',
  },
  approver: {
    is: 'This browser is the second approver of large payments.',
    how: 'Large payments need a second approver. To try this, open the following address in another browser or a private window, and enter the code from the terminal:',
    title: 'Second approver',
    code: 'Code from the terminal',
    enter: 'Become second approver',
    wrong: 'This is not the code that the server printed at startup.',
  },
  approvalsPage: {
    title: 'Approvals',
    open: 'All approvals and history',
    keys: 'J and K move between approvals, Enter opens one, Escape closes it.',
  },
  starts: {
    payment: {
      title: 'Approve a payment',
      explanation: 'The call waits for you, then runs exactly once.',
      text: 'Send $50 to Alice',
    },
    twoPeople: {
      title: 'Two approvers',
      explanation: 'Over $500, a second person approves: on a phone, by QR code.',
      text: 'Send $600 to Alice',
    },
    talk: {
      title: 'Talk and approve',
      explanation: 'Speak with the assistant and decide while you talk.',
    },
  },
  suggestions: [
    {
      title: 'Tools',
      suggestions: [
        { text: 'What is the weather in Tokyo?' },
        { text: 'Where am I?' },
        { text: 'Play track 2' },
      ],
    },
    {
      title: 'Approvals',
      suggestions: [
        { text: 'Send $30 to Alice and $40 to Bob' },
        { text: 'Send $20 to Alice, then $30 to Bob' },
      ],
    },
    {
      title: 'Rich replies',
      suggestions: [
        { text: 'Draw a picture of a lighthouse' },
        { text: 'What size and colour is this picture?', needsPicture: true },
        { text: 'Think step by step: which is larger, 9.9 or 9.11?' },
        { text: 'Search for the history of tea' },
      ],
    },
    {
      title: 'Stop and errors',
      suggestions: [
        { text: 'Write a long story that I can stop' },
        { text: 'Show me what a rate limit looks like' },
      ],
    },
  ],
}
