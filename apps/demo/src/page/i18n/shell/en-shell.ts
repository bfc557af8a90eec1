import type { ShellLabels } from './shell-labels.ts'

export const enShell: ShellLabels = {
  close: 'Close',
  cancel: 'Cancel',
  chats: {
    label: 'Chats',
    show: 'Show the chats',
    hide: 'Hide the chats',
    search: 'Search chats',
    none: 'Your chats will be here.',
    noneFound: 'No chat has this in its name.',
    today: 'Today',
    earlier: 'Earlier',
    running: 'An answer is being written',
    pending: (count) => (count === 1 ? '1 waits for approval' : `${count} wait for approval`),
    options: (title) => `Options of “${title}”`,
    rename: 'Rename',
    newName: 'New name',
    delete: 'Delete',
    deleteTitle: 'Delete this chat?',
    deleteText: (title) => `“${title}” and what was said in it will be gone for good.`,
    problems: {
      list: 'The chats cannot be listed right now.',
      rename: 'The chat could not be renamed.',
      delete: 'The chat could not be deleted.',
    },
    untitled: 'Untitled chat',
  },
  mode: {
    label: 'How to talk with the model',
    names: { sse: 'ADK · SSE', live: 'ADK · Live', direct: 'Gemini direct' },
    explanations: {
      sse: 'The agent on the server; each answer is streamed over HTTP.',
      live: 'The same agent over one socket: speak, interrupt, and be answered aloud.',
      direct: 'Gemini without the agent, by the AI SDK alone, for comparison.',
    },
  },
  offline: 'Offline',
  inspector: {
    title: 'Inspector',
    show: 'Show the inspector',
    hide: 'Hide the inspector',
    chat: 'Chat',
    mode: 'Mode',
    messages: 'Messages as JSON',
  },
  settings: {
    title: 'Settings',
    language: 'Language',
    theme: 'Theme',
    themes: { system: 'System', light: 'Light', dark: 'Dark' },
    music: 'Music',
    musicOff: 'Off',
    shortcuts: 'Keyboard shortcuts',
  },
  shortcuts: {
    title: 'Keyboard shortcuts',
    names: {
      newChat: 'New chat',
      composer: 'Write a message',
      chats: 'Show or hide the chats',
      inbox: 'What waits for approval',
      nextApproval: 'Go to the next approval',
      inspector: 'Show or hide the inspector',
      help: 'This list',
      send: 'Send the message',
      newLine: 'New line',
      close: 'Close what is open',
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
      total: (name) => `${name} is too much for one message. Send it with the next one.`,
      count: (max) => `A message takes up to ${max} pictures.`,
      unreadable: (name) => `${name} cannot be read.`,
    },
  },
  actions: {
    copy: 'Copy',
    copied: 'Copied',
    failed: 'The browser did not allow it',
    edit: 'Edit and send again',
    editLabel: 'Edit the message',
    editHint: 'Takes the place of this message and of all that follows.',
    cancel: 'Cancel',
    resend: 'Send again',
  },
  voice: {
    needsLive: 'Talk: switches to ADK · Live, the mode that can listen and speak',
    microphone: 'Microphone',
    waiting: 'No connection: what you say waits.',
    emulated:
      'The built-in emulator does not understand speech: whatever you say, it plays a demonstration.',
  },
  model: {
    label: 'Model',
    emulated:
      'The built-in emulator answers, not Gemini: it knows the examples of an empty chat. Set GOOGLE_API_KEY for the real model.',
  },
  approver: {
    is: 'This browser is the second person for large payments.',
    how: 'Large payments need a second person. To be that person as well, open in another browser or a private window, with the code from the terminal:',
    title: 'Second person',
    code: 'Code from the terminal',
    enter: 'Be the second person',
    wrong: 'This is not the code that the server printed when it started.',
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
        { text: 'Send $50 to Alice' },
        { text: 'Send $30 to Alice and $40 to Bob' },
        { text: 'Send $20 to Alice, then $30 to Bob' },
      ],
    },
    {
      title: 'Answers',
      suggestions: [
        { text: 'Draw a picture of a lighthouse' },
        { text: 'What is in this picture?', needsPicture: true },
        { text: 'Think step by step: which is larger, 9.9 or 9.11?' },
        { text: 'Search for the history of tea' },
      ],
    },
    {
      title: 'Limits',
      suggestions: [
        { text: 'Write a long story that I can stop' },
        { text: 'Show me what a rate limit looks like' },
      ],
    },
  ],
}
