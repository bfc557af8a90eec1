import type { AdkTexts } from './texts.ts'

/** All words in English. */
export const en: AdkTexts = {
  locale: 'en',
  message: {
    conversation: 'Conversation',
    you: 'You',
    assistant: 'Assistant',
    thinking: 'Thinking…',
    thoughts: 'Thoughts',
    sources: 'Sources',
    image: 'Image made by the assistant',
    file: 'File',
    stopped: 'Stopped',
    code: 'Code',
    codeResult: 'Result of the code',
    usage: (inputTokens, outputTokens) => `${inputTokens} tokens in, ${outputTokens} out`,
    retry: 'Try again',
  },
  tool: {
    arguments: 'Arguments',
    result: 'Result',
    details: 'Details',
    preparing: 'Preparing',
    running: 'Running',
    waiting: 'Needs approval',
    done: 'Done',
    failed: 'Failed',
    denied: 'Denied',
    deed: (toolName) => `Run ${toolName}`,
    names: {},
  },
  approval: {
    severity: { low: 'Low risk', medium: 'Medium risk', high: 'High risk' },
    waiting: 'Waiting for your decision.',
    waitingForOthers: 'You have approved. Waiting for another person.',
    running: 'Approved. It is running…',
    denying: 'Denied. Informing the assistant…',
    sending: 'Sending your decision…',
    unsent: 'Your decision is waiting for the connection. Nothing has run yet.',
    failed: 'Approved, but it failed.',
    lookAlike: (words) => `Contains letters that look like others: ${words}`,
    refused: 'Your decision was not accepted.',
    over: 'By this clock, the time to decide is over.',
    timeLeft: 'Time left to decide',
    secondsLeft: (seconds) =>
      seconds >= 60 ? 'One minute left to decide.' : `${seconds} seconds left to decide.`,
    approve: 'Approve',
    approveEdited: 'Approve with these changes',
    deny: 'Deny…',
    denyNow: 'Deny',
    edit: 'Edit…',
    back: 'Back',
    reason: 'Reason (optional)',
    badNumber: 'Enter a number.',
    badJson: 'This is not valid JSON.',
    argument: 'Argument',
    value: 'Value',
    asked: 'Asked',
    ran: 'Approved',
    votes: ({ given, voted }, needed) => {
      if (voted) return `You have approved: ${given} of ${needed}. It waits for another person.`
      return given === 0
        ? `${needed} people have to approve this.`
        : `${given} of ${needed} approvals are given.`
    },
    states: { denied: 'Denied', expired: 'Expired', cancelled: 'Cancelled', unknown: 'Unknown' },
    endings: {
      approved: 'Approved.',
      denied: 'Denied. It did not run.',
      expired: 'Expired: nobody decided in time. It did not run.',
      cancelled: 'Cancelled. It did not run.',
      unknown: 'Unknown: it may or may not have happened. Check before you repeat it.',
    },
    because: (ending, reason) => `${ending} Reason: ${reason}`,
    refusals: { unavailable: 'The server cannot be reached. Try again in a moment.' },
  },
  inbox: {
    label: (count, hasMore = false) => {
      if (hasMore) return `Approvals: more than ${count} are waiting`
      return count === 1 ? 'Approvals: 1 is waiting' : `Approvals: ${count} are waiting`
    },
    title: 'Waiting for a decision',
    empty: 'Nothing is waiting.',
    open: 'Open the chat',
    deciding: 'Sending your decision…',
    unread: 'The list could not be read. It may be out of date.',
    loadMore: 'Load more',
    loadingMore: 'Loading more…',
    withdraw: 'Withdraw vote',
  },
  problem: {
    rateLimited: 'The model is busy',
    rateLimitedText: (seconds) =>
      seconds === undefined
        ? 'Too many requests at the moment. Wait a little, then try again.'
        : `Too many requests at the moment. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`,
    disconnected: {
      title: 'The connection was lost',
      text: 'Check the network. The answer goes on where it was when you reconnect.',
    },
    busy: {
      title: 'An answer is still being written',
      text: 'Wait until it is finished, then try again.',
    },
    blocked: {
      title: 'The model declined to answer',
      text: 'Put the question in other words and send it again.',
    },
    unavailable: {
      title: 'Something went wrong',
      text: 'The answer could not be completed. Try again in a moment.',
    },
    unfinished: {
      title: 'The answer is not finished',
      text: 'What was done is kept, and is not done again. Write how to go on.',
    },
    signedOut: {
      title: 'You are not signed in any more',
      text: 'Reload the page and send the message again.',
    },
    refused: 'The message was not accepted',
    retry: 'Try again',
    reconnect: 'Reconnect',
    reload: 'Reload the page',
  },
  connection: {
    idle: 'Not connected yet',
    connecting: 'Connecting…',
    open: 'Connected',
    lost: 'Connection lost, reconnecting…',
    closed: 'Disconnected',
  },
  voice: {
    hold: 'Hold to talk',
    handsFree: 'Talk hands-free',
    end: 'End the conversation',
    states: {
      off: 'Voice is off.',
      asking: 'Allow the microphone in the browser…',
      listening: 'Listening…',
      'person-speaking': 'Hearing you…',
      'model-speaking': 'The assistant is speaking…',
    },
    level: 'Loudness',
    problems: {
      'permission-denied':
        'The microphone is blocked. Allow it in the settings of the browser for this page, then try again.',
      'no-microphone': 'There is no microphone. Connect one, then try again.',
      'in-use': 'Another program uses the microphone. Close it, then try again.',
      'insecure-page': 'Voice needs a secure page. Open this address with https.',
      unsupported: 'This browser cannot record sound. Try a current one.',
      'lost-microphone': 'The microphone is gone. Connect it again, then start anew.',
      'lost-connection': 'The connection was lost. Start again.',
    },
  },
}
