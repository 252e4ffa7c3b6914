export { fulfilment } from './fulfilment';
export { orderPayment } from './order-payment';
export { reconciliation } from './reconciliation';
export { reconcileDay } from './reconciliation-day';
export { refund } from './refund';
export { sweep } from './sweep';
